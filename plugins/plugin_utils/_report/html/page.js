
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
  if (!data.rails || !data.rails.length || !data.hosts.length) return;
  const byId = (id) => document.getElementById(id);
  const NONE = 0, FAILED = 1, MISSING = 2, FIRST = 3, SHOWN = 12;
  const hosts = data.hosts, n = hosts.length, canvas = byId("map-canvas"), pen = canvas.getContext("2d");
  const bytes = (text) => { const raw = atob(text), out = new Uint8Array(raw.length); for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i); return out; };
  const grids = new Map();
  const grid = (rail) => {
    if (!grids.has(rail)) {
      const two = bytes(rail.gbps_grid), cells = new Uint16Array(n * n);
      for (let i = 0; i < cells.length; i++) cells[i] = two[2 * i] | (two[2 * i + 1] << 8);
      grids.set(rail, { gbps: cells, usec: rail.usec_grid ? bytes(rail.usec_grid) : null });
    }
    return grids.get(rail);
  };
  const least = (rail, one, other) => {
    const known = [rail.limits[one], rail.limits[other]].filter((limit) => limit !== null);
    return known.length ? Math.min(...known) : null;
  };
  // One direction of a pair is enough: the other cell shows the same result.
  const result = (rail, sender, receiver) => {
    const cells = grid(rail);
    let at = sender * n + receiver, turned = false;
    if (cells.gbps[at] === NONE && cells.gbps[receiver * n + sender] !== NONE) { at = receiver * n + sender; turned = true; }
    const code = cells.gbps[at];
    const usec = cells.usec && cells.usec[at] >= FIRST ? rail.usec_low * Math.pow(rail.usec_factor, cells.usec[at] - FIRST) : null;
    const gbps = code >= FIRST ? (code - FIRST) * rail.gbps_step : null;
    const limit = least(rail, sender, receiver);
    return { state: code < FIRST ? code : FIRST, gbps, usec, limit, share: gbps !== null && limit ? gbps / limit : null, turned };
  };
  const COLORS = { failed: [20, 20, 20], missing: [150, 90, 200], none: [225, 228, 232], nolimit: [170, 176, 184] };
  // Light (bad) to dark blue (good) stays distinguishable without color.
  const RAMP = [[178, 24, 43], [239, 138, 98], [253, 219, 146], [146, 197, 222], [33, 102, 172]];
  const mix = (part) => {
    const at = Math.max(0, Math.min(1, part)) * (RAMP.length - 1), low = Math.min(RAMP.length - 2, Math.floor(at));
    return RAMP[low].map((value, i) => Math.round(value + (RAMP[low + 1][i] - value) * (at - low)));
  };
  let rail = data.rails[0], figure = "share", order = [], cursor = [0, 1], range = [0, 1];
  const value = (found) => found[figure];
  const color = (found) => {
    if (found.state === FAILED) return COLORS.failed;
    if (found.state === MISSING) return COLORS.missing;
    if (found.state === NONE) return COLORS.none;
    const v = value(found);
    if (v === null) return COLORS.nolimit;
    const part = (v - range[0]) / (range[1] - range[0] || 1);
    return mix(figure === "usec" ? 1 - part : part);
  };
  const badness = (host) => {
    let low = 0;
    for (let other = 0; other < n; other++) {
      if (other === host) continue;
      const found = result(rail, host, other);
      if (found.state === FAILED || found.state === MISSING || (found.share !== null && found.share < data.warn_below)) low++;
    }
    return low;
  };
  const sort = () => {
    order = hosts.map((_, i) => i);
    const how = byId("map-order").value;
    if (how === "leaf") order.sort((a, b) => rail.leaves[a].localeCompare(rail.leaves[b], "en", { numeric: true }) || a - b);
    if (how === "worst") { const low = hosts.map((_, i) => badness(i)); order.sort((a, b) => low[b] - low[a] || a - b); }
  };
  const text = (tag, words) => { const element = document.createElement(tag); element.textContent = words; return element; };
  const shown = (number, digits) => (number === null ? "not measured" : String(Number(number.toPrecision(digits))));
  const words = (found) => {
    if (found.state === FAILED) return "failed";
    if (found.state === MISSING) return "planned, no result";
    if (found.state === NONE) return "not measured";
    const parts = [`${shown(found.gbps, 5)} Gb/s`];
    if (found.share !== null) parts.push(`${(100 * found.share).toFixed(1)} % of the expected ${shown(found.limit, 5)} Gb/s`);
    if (found.usec !== null) parts.push(`about ${shown(found.usec, 3)} µs`);
    if (found.turned) parts.push("measured in the other direction");
    return parts.join(", ");
  };
  const scan = () => {
    let low = Infinity, high = -Infinity;
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
      if (i === j) continue;
      const v = value(result(rail, i, j));
      if (v !== null) { low = Math.min(low, v); high = Math.max(high, v); }
    }
    range = figure === "share" ? [Math.min(0.5, low), 1] : [low, high];
    if (low === Infinity) range = [0, 1];
  };
  const draw = () => {
    const image = new ImageData(n, n);
    for (let row = 0; row < n; row++) for (let column = 0; column < n; column++) {
      const rgb = row === column ? [255, 255, 255] : color(result(rail, order[row], order[column]));
      image.data.set([...rgb, 255], 4 * (row * n + column));
    }
    const small = document.createElement("canvas");
    small.width = small.height = n;
    small.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = n > canvas.width;
    pen.drawImage(small, 0, 0, canvas.width, canvas.height);
    const size = canvas.width / n;
    pen.lineWidth = 3; pen.strokeStyle = "#000";
    pen.strokeRect(cursor[1] * size - 1, cursor[0] * size - 1, size + 2, size + 2);
    pen.lineWidth = 1; pen.strokeStyle = "#fff";
    pen.strokeRect(cursor[1] * size - 1, cursor[0] * size - 1, size + 2, size + 2);
  };
  const swatch = (rgb) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    svg.setAttribute("viewBox", "0 0 16 9"); svg.setAttribute("aria-hidden", "true");
    box.setAttribute("width", "16"); box.setAttribute("height", "9"); box.setAttribute("fill", `rgb(${rgb.join(",")})`);
    svg.append(box);
    return svg;
  };
  const legend = () => {
    const list = byId("map-legend");
    list.replaceChildren();
    const unit = { share: "%", gbps: "Gb/s", usec: "µs" }[figure];
    for (let step = 4; step >= 0; step--) {
      const part = step / 4, v = figure === "usec" ? range[1] - part * (range[1] - range[0]) : range[0] + part * (range[1] - range[0]);
      const item = text("li", ` ${figure === "share" ? (100 * v).toFixed(0) : shown(v, 4)} ${unit}`);
      item.prepend(swatch(mix(part)));
      list.append(item);
    }
    for (const [name, label] of [["failed", "failed"], ["missing", "planned, no result"], ["none", "not measured"], ["nolimit", "no expectation"]]) {
      const item = text("li", ` ${label}`);
      item.prepend(swatch(COLORS[name]));
      list.append(item);
    }
  };
  const say = () => {
    const [one, other] = cursor.map((at) => order[at]);
    const leaf = (host) => (rail.leaves[host] ? ` (${rail.leaves[host]})` : "");
    byId("map-cell").textContent = one === other ? `${hosts[one]}${leaf(one)}: itself`
      : `${rail.name}, ${hosts[one]}${leaf(one)} to ${hosts[other]}${leaf(other)}: ${words(result(rail, one, other))}`;
  };
  const table = (host) => {
    const rows = [];
    for (let other = 0; other < n; other++) {
      if (other === host) continue;
      const found = result(rail, host, other);
      if (found.state !== NONE) rows.push([found.state < FIRST ? -1 : found.share ?? found.gbps, other, found]);
    }
    rows.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const out = document.createElement("table"), body = document.createElement("tbody");
    out.append(text("caption", `${hosts[host]}, ${rail.name}: ${rows.length} results, the lowest ${Math.min(SHOWN, rows.length)}`));
    for (const [, other, found] of rows.slice(0, SHOWN)) {
      const line = document.createElement("tr"), head = text("th", hosts[other]);
      head.scope = "row";
      line.append(head, text("td", words(found)));
      body.append(line);
    }
    out.append(body);
    return out;
  };
  const detail = () => {
    const [one, other] = cursor.map((at) => order[at]), place = byId("map-detail");
    place.replaceChildren(text("h3", `Results of ${hosts[one]} and ${hosts[other]} on ${rail.name}`));
    const number = data.rails.indexOf(rail);
    for (const [on, sender, receiver, kind, line] of data.raw) {
      if (on === number && ((sender === one && receiver === other) || (sender === other && receiver === one))) place.append(text("p", `${kind}: ${line}`));
    }
    place.append(table(one));
    if (one !== other) place.append(table(other));
  };
  const all = () => { sort(); scan(); draw(); legend(); say(); };
  const move = (row, column) => { cursor = [Math.max(0, Math.min(n - 1, row)), Math.max(0, Math.min(n - 1, column))]; draw(); say(); };
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [Math.floor((event.clientY - box.top) / box.height * n), Math.floor((event.clientX - box.left) / box.width * n)];
  };
  const KEYS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  canvas.addEventListener("click", (event) => { move(...at(event)); detail(); });
  canvas.addEventListener("keydown", (event) => {
    if (event.key in KEYS) { const [down, right] = KEYS[event.key]; move(cursor[0] + down, cursor[1] + right); event.preventDefault(); }
    if (event.key === "Enter" || event.key === " ") { detail(); event.preventDefault(); }
  });
  data.rails.forEach((each, i) => { const option = text("option", each.name); option.value = String(i); byId("map-rail").append(option); });
  const lowest = data.rails.map((each, i) => { rail = each; let low = 0; for (let h = 0; h < n && n <= 128; h++) low += badness(h); return [low, i]; });
  lowest.sort((a, b) => b[0] - a[0] || a[1] - b[1]);
  rail = data.rails[lowest[0][1]];
  byId("map-rail").value = String(lowest[0][1]);
  if (!data.rails.some((each) => each.limits.some((limit) => limit !== null))) { byId("map-figure").value = figure = "gbps"; }
  byId("map-rail").addEventListener("change", (event) => { rail = data.rails[Number(event.target.value)]; byId("map-detail").replaceChildren(); all(); });
  byId("map-figure").addEventListener("change", (event) => { figure = event.target.value; all(); });
  byId("map-order").addEventListener("change", all);
  byId("map").hidden = false;
  all();
})();
