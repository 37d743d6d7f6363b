#!/usr/bin/env bash
# Builds the documentation site below tests/output/site/html. Its source is a copy of the Markdown, laid out as in the repository, beside
# the documentation of modules and roles. A warning is an error.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

site=tests/output/site
rm -rf "$site"
mkdir -p "$site/source/reference"
chmod 755 "$site/source/reference"
# What the documents link to is there too.
git ls-files -z --cached --others --exclude-standard README.md SECURITY.md CONTRIBUTING.md docs inventories plugins |
    xargs --null cp --parents --target-directory "$site/source"
antsibull-docs collection --use-current --squash-hierarchy --fail-on-error --dest-dir "$site/source/reference" rdma.cluster
python -m sphinx --quiet --fail-on-warning --keep-going --builder html --conf-dir tests/tools/sphinx "$site/source" "$site/html"
echo "The site: $site/html/docs/index.html"
