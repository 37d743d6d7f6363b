#!/usr/bin/env bash
# Builds the collection, installs the built file elsewhere, and lets Ansible find the site playbook in it from there.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
export ANSIBLE_COLLECTIONS_PATH=$work/collections
unset PYTHONPATH ANSIBLE_CONFIG

ansible-galaxy collection build --output-path "$work" .
tarball=$(echo "$work"/rdma-cluster-*.tar.gz)
# What git ignores is state of this clone and has no place in the file.
extra=$(comm -23 <(tar --list --file="$tarball" | grep -v '/$' | sort) \
    <({ git ls-files --cached --others --exclude-standard; printf 'MANIFEST.json\nFILES.json\n'; } | sort))
if [[ -n $extra ]]; then
    printf 'These files are in the built collection, and git ignores them: name them in build_ignore of galaxy.yml\n%s\n' "$extra" >&2
    exit 1
fi

cd "$work"
# The dependencies come with the pinned requirements.
ansible-galaxy collection install --no-deps --collections-path "$work/collections" "$tarball"
ansible-playbook --syntax-check --inventory localhost, rdma.cluster.site | tee "$work/found"
grep --quiet --fixed-strings "$work/collections/ansible_collections/rdma/cluster/playbooks/site.yml" "$work/found" || {
    echo "rdma.cluster.site was not found in the installed collection" >&2
    exit 1
}
