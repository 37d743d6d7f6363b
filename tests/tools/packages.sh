#!/usr/bin/env bash
# Installs what is missing of the distribution's packages named in the files given.
set -euo pipefail

missing=()
while read -r package; do
    [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done < <(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@")

# The lab's image is made from apt's package lists, so these are needed even where every package is there.
(( ${#missing[@]} == 0 )) && [[ -n $(apt-get indextargets 'Created-By: Packages') ]] && exit 0

if (( EUID != 0 )); then
    echo "Missing packages; as root: apt-get update && apt-get install ${missing[*]}" >&2
    exit 1
fi
echo "apt: installing ${missing[*]:-nothing, reading the package lists} ..."
export DEBIAN_FRONTEND=noninteractive
apt=(apt-get -o DPkg::Lock::Timeout=300 -o APT::Color=0 -qq)
"${apt[@]}" update
(( ${#missing[@]} == 0 )) || "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null
