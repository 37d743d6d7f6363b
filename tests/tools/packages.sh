#!/usr/bin/env bash
# Installs what is missing of the distribution's packages named in the files given.
set -euo pipefail

command -v apt-get >/dev/null || {
    echo "This machine has no apt. Run the lab and its checks in a container: docs/lab.md, What it needs." >&2
    exit 1
}
missing=()
while read -r package; do
    [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done < <(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@" | sort -u)

# The lab's image is made from apt's package lists, so these are needed even where every package is there.
(( ${#missing[@]} == 0 )) && [[ -n $(apt-get indextargets 'Created-By: Packages') ]] && exit 0

echo "apt: installing ${missing[*]:-nothing, reading the package lists} ..."
# shellcheck disable=SC2016 # The inner shell expands.
exec "$(dirname "$0")/../../lab/as_root" "to install packages" sh -euc '
    export DEBIAN_FRONTEND=noninteractive
    apt="apt-get -o DPkg::Lock::Timeout=300 -o APT::Color=0 -qq"
    $apt update
    # Debian starts opensm on every InfiniBand port of the machine, which may be on a fabric that somebody uses, and routing daemons and
    # lldpd of the machine itself. The lab starts its own.
    for service in opensm frr lldpd; do
        unit=/etc/systemd/system/$service.service
        case " $* " in *" $service "*) [ -e "$unit" ] || [ -L "$unit" ] || ln -s /dev/null "$unit" ;; esac
    done
    [ $# = 0 ] || $apt install -y --no-install-recommends "$@" </dev/null >/dev/null
' packages ${missing[@]+"${missing[@]}"}
