#!/bin/sh
# A stand-in of rdma.cluster's lab for ofed_uninstall.sh: removes the stand-in's packages.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export DEBIAN_FRONTEND=noninteractive
packages='mlnx-ofed-kernel-dkms mlnx-ofed-kernel-modules mlnx-ofed-kernel-utils mlnx-tools mlnx-fw-updater ofed-scripts'

usage() {
    echo "Usage: $0 [--unload-modules] [--force] [--keep-mft] [-v|--verbose] [-q|--quiet] [--dry-run]"
    exit 0
}

force='' unload='' dry=''
for word in "$@"; do
    case $word in
        --force) force=yes ;;
        --unload-modules) unload=yes ;;
        --dry-run) dry=yes ;;
        --keep-mft | -v | --verbose | -q | --quiet) ;;
        *) usage ;;
    esac
done
if [ "$(id -u)" != 0 ]; then
    echo "Only root can run $0"
    exit 172
fi

there='' others=''
for package in $packages; do
    dpkg-query --show --showformat='${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^.[^nc]' && there="$there $package"
done
# shellcheck disable=SC2086 # A list of packages.
for dependent in $(dpkg --purge --dry-run $there 2>&1 | sed -n 's/^ \([^ ]*\) depends on .*/\1/p' | sort -u); do
    case " $packages " in *" $dependent "*) ;; *) others="$others $dependent" ;; esac
done
if [ -z "$force" ] && [ -n "$others" ]; then
    printf '\nError: One or more packages depends on MLNX_OFED_LINUX.\nThose packages should be removed before uninstalling MLNX_OFED_LINUX:\n\n'
    printf '%s\n\nTo force uninstallation use '\''--force'\'' flag.\n' "$others"
    exit 174
fi
if [ -n "$dry" ]; then
    echo "$others $there" | tr -s ' ' '\n'
    exit 0
fi
if [ -z "$force" ]; then
    printf '\nThis program will uninstall all MLNX_OFED_LINUX packages on your machine (a stand-in of the lab).\n\nDo you want to continue?[y/N]:'
    read -r answer || exit 1
    case $answer in [yY]*) ;; *) exit 1 ;; esac
fi
[ -z "$unload" ] || /etc/init.d/openibd stop || exit 1
# shellcheck disable=SC2086 # A list of packages.
[ -z "$others$there" ] || dpkg --purge --force-remove-reinstreq $others $there || exit 1
echo 'Uninstall finished successfully'
