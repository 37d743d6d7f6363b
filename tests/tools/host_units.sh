#!/usr/bin/env bash
# Runs the tests of what runs on hosts under the oldest Python that a host may have, and this machine has: the one that lacks most of
# what we might use. With RDMA_TEST_PYTHONS=all under every one.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

# A module needs no more of Ansible than its module_utils, which run on older Pythons than Ansible itself.
mkdir -p "$VENV/hosts/lib"
ln -sfn "$(python -c 'import ansible, pathlib; print(pathlib.Path(ansible.__file__).parent)')" "$VENV/hosts/lib/ansible"

status=0
running=()
own=$(python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
tried=("${host_pythons[@]}")
missing=" ${tried[*]} "
if [[ ${RDMA_TEST_PYTHONS:-} != all ]]; then
    mapfile -t tried < <(tests/tools/pythons.sh "${host_pythons[@]}" | awk -v own="$own" '$1 != own { print $1; exit }')
    # Those that are older are missing, those that are newer are not asked for.
    missing="${missing%%" ${tried[0]:-none} "*} "
fi
# As many processes as there are cores, whether one Python is tried or several at once.
each=$(( ${#tried[@]} > 1 ? 1 : $(nproc) ))
while read -r version python; do
    missing=${missing/ $version / }
    [[ $version != "$own" ]] || continue # `make unit` runs these tests, and all others
    venv=$VENV/hosts/$version
    wanted="$python $(sha256sum tests/requirements-hosts.txt)"
    if [[ $(cat "$venv/made" 2>/dev/null) != "$wanted" ]]; then
        "$python" -m venv --clear "$venv"
        install_requirements "$venv" tests/requirements-hosts.txt
        echo "$wanted" > "$venv/made"
    fi
    # The runner's tests wait for real processes most of their time: the oldest and the newest Python suffice.
    [[ $version == "${host_pythons[0]}" || $version == "${host_pythons[-1]}" ]] && less=() ||
        less=(--ignore tests/unit/plugins/module_utils/_pairs/runner/test_main.py)
    (
        PYTHONPATH=$VENV/hosts/lib "$venv/bin/python" -m pytest --quiet -p no:cacheprovider \
            --numprocesses "$each" --dist worksteal --durations 10 ${less[@]+"${less[@]}"} \
            tests/unit/plugins/module_utils tests/unit/plugins/modules </dev/null > "$VENV/hosts/$version.log" 2>&1 ||
            echo failed >> "$VENV/hosts/$version.log"
    ) &
    running+=("$version")
    # As many at a time as there are cores.
    (( $(jobs -rp | wc -l) < $(nproc) )) || wait -n || true
done < <(tests/tools/pythons.sh "${tried[@]}")
wait
for version in "${running[@]}"; do
    echo "-- Python $version"
    sed '$ { /^failed$/d }' "$VENV/hosts/$version.log"
    [[ $(tail -n 1 "$VENV/hosts/$version.log") != failed ]] || status=1
done
[[ $missing == " " ]] || echo "Not on this machine, so not tried: Python${missing% }"
exit $status
