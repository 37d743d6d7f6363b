#!/usr/bin/env bash
# The unit tests. With RDMA_TEST_ONCE=yes without those of what runs on hosts, which host_units.sh runs under the oldest Python of hosts,
# unless this machine has no Python for that.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

less=()
if [[ ${RDMA_TEST_ONCE:-} == yes ]]; then
    own=$(python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    [[ -z $(tests/tools/pythons.sh "${host_pythons[@]}" | awk -v own="$own" '$1 != own') ]] ||
        less=(--ignore tests/unit/plugins/module_utils --ignore tests/unit/plugins/modules)
fi
# The slowest are listed, since they decide the total.
exec python -m pytest --numprocesses auto --dist worksteal --durations 25 ${less[@]+"${less[@]}"} "$@"
