# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page: jinja2 with autoescape, one style sheet and one script, all in the file.

Plotly's and Bokeh's offline bundles have 3 to 5 MB each, more than the whole report may have. jinja2 is part of every ansible-core, escapes
every value, and needs nothing in the browser. The only chart that needs a script is the heat map: about 200 lines that fill a canvas.

Three layers keep texts of hosts harmless: they are cleaned (control characters and marks that turn the direction of writing become "?"),
then escaped, and the content security policy of the page allows only the script and the style sheet with these hashes, and no request.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ansible_collections.rdma.cluster.plugins.module_utils._base.lines import clean

FOLDER = Path(__file__).parent
#: A cell of a table shows at most this number of characters.
LONGEST = 2000


def render(values: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Return the page. values: of the template; data: for the heat map, as JSON in a block that no browser executes."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        finalize=_cleaned,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(figure=figure, percent=percent, words=status_words, signed=signed)
    style, script = (FOLDER.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    whole = {**values, "style": Markup(style), "script": Markup(script), "policy": Markup(policy), "data": Markup(page_json(data))}  # noqa: S704
    return environment.get_template("page.html.j2").render(whole)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return clean(value, LONGEST, lines=True)
    return value


def page_json(data: Mapping[str, Any]) -> str:
    """Return JSON that cannot end its block, whatever the names of hosts are."""
    text = json.dumps(data, separators=(",", ":"), sort_keys=True, default=str, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def figure(value: float | None, digits: int = 4) -> str:
    """Return a number with some significant digits; "not measured" for None."""
    return "not measured" if value is None else f"{value:.{digits}g}"


def percent(share: float | None) -> str:
    """Return a share in percent; "-" for None."""
    return "-" if share is None else f"{100 * share:.1f} %"


def signed(change: float) -> str:
    """Return a change in percent with its sign."""
    # Without "-0.0".
    return f"{round(change, 1) + 0.0:+.1f} %"


def status_words(status: str) -> str:
    """Return a status in words."""
    return {"not_applicable": "n/a", "not reached": "-"}.get(status, status)
