#!/usr/bin/env bash
# Every linter, also after one of them has found something.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

status=0
check() {
    echo "-- $*"
    "$@" || status=1
}

package=ansible_collections.rdma.cluster.plugins
check ruff check --output-format concise
check ruff format --check
# Hosts have 3.9 at least; mypy knows nothing older than 3.10.
check mypy --python-version 3.10 --package $package.module_utils
check mypy --python-version 3.11 --package lab --package $package.plugin_utils --package $package.action --package $package.filter --package $package.lookup
check yamllint --strict .
check ansible-lint --strict
check antsibull-changelog lint
# `all` instead of `dependent` would read the hundred collections that PyPI's ansible brings: two minutes.
check antsibull-docs lint-collection-docs --plugin-docs --validate-collection-refs dependent --disallow-unknown-collection-refs .
check python -m tests.tools.prose
pages=(README.md SECURITY.md CONTRIBUTING.md docs/*.md docs/*/*.md roles/*/README.md)
check proselint --output-format compact check --config tests/tools/proselintrc.json "${pages[@]}"
# British spellings too; ECT is ECN-capable transport, Clos a topology.
check codespell --builtin clear,rare,en-GB_to_en-US --ignore-words-list ect,clos "${pages[@]}" roles playbooks changelogs/fragments inventories plugins/modules
exit $status
