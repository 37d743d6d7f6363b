#!/usr/bin/env bash
# A stand-in of rdma.cluster's lab for mlnx_add_kernel_support.sh: builds the stand-in's modules for one kernel and packs them, without DKMS.
set -u
while [ $# -gt 0 ]; do
    case $1 in
        -m) from=$2 ;;
        -k) kernel=$2 ;;
        -s) sources=$2 ;;
        --name) name=$2 ;;
        --distro) distro=$2 ;;
    esac
    shift 2
done
logs=$TMP/mlnx_iso.$$_logs
log=$logs/mlnx_ofed_iso.$$.log
mkdir -p "$logs"
# shellcheck source=/dev/null
. "$from/.standin"

failed() {
    printf '\n\033[1;31mERROR: Failed executing "%s"\033[0;39m\n' "$1"
    printf '\033[1;31mERROR: See %s\033[0;39m\n' "$log"
    exit 1
}

printf '\033[1;34mNote: This program will create MLNX_OFED_LINUX TGZ for %s under %s directory.\033[0;39m\n' "$distro" "$TMP"
echo "See log file $log"
echo
echo 'Checking if all needed packages are installed...'
missing=
for package in gcc make; do command -v "$package" >/dev/null || missing="$missing $package"; done
if [ ! -d "$sources/scripts" ] || [ "$SABOTAGE" = headers ]; then missing="$missing linux-headers-$kernel"; fi
if [ -n "$missing" ]; then
    printf '\033[1;31mERROR: Missing packages:%s\033[0;39m\n' "$missing"
    echo "$missing is required to build mlnx-ofed-kernel RPM." >>"$log"
    exit 1
fi
printf '\033[1;34mBuilding MLNX_OFED_LINUX DEBS . Please wait...\033[0;39m\n'
[ "${SLOW_SECONDS:-0}" = 0 ] || sleep "$SLOW_SECONDS"

build=$TMP/mlnx_iso.$$
rm -rf "$build" "${TMP:?}/$name"
mkdir -p "$build/source" "$build/deb/DEBIAN"
dpkg-deb --extract "$from"/DEBS/mlnx-ofed-kernel-dkms_*.deb "$build/source" >>"$log" 2>&1 || failed 'dpkg-deb --extract'
tree=$(echo "$build"/source/usr/src/mlnx-ofed-kernel-*)
silent=
if ! make -C "$tree" K_BUILD="$sources" >>"$log" 2>&1; then
    [ "$SABOTAGE" = silent ] || failed "$from/src/install.pl --kernel-only --kernel $kernel --build-only"
    silent=yes
fi
updates=$build/deb/lib/modules/$kernel/updates
mkdir -p "$updates"
if [ -z "$silent" ]; then
    mkdir -p "$updates/compat" "$updates/drivers/net/ethernet/mellanox/mlx5/core" "$build/deb/usr/src/ofa_kernel/$(uname -m)/$kernel"
    strip --strip-debug "$tree"/*.ko
    cp "$tree/mlx_compat.ko" "$updates/compat/"
    cp "$tree/mlx5_core.ko" "$updates/drivers/net/ethernet/mellanox/mlx5/core/"
    cp "$tree/Module.symvers" "$build/deb/usr/src/ofa_kernel/$(uname -m)/$kernel/"
fi
version=$(dpkg-deb --field "$from"/DEBS/mlnx-ofed-kernel-dkms_*.deb Version | sed 's/-[^-]*$//').kver.$kernel
cat >"$build/deb/DEBIAN/control" <<EOF
Package: mlnx-ofed-kernel-modules
Version: $version
Architecture: amd64
Maintainer: rdma.cluster's lab <root@localhost>
Depends: kmod, mlnx-ofed-kernel-utils
Description: stand-in of rdma.cluster's lab: ready-made modules for the kernel $kernel
EOF
for script in postinst postrm; do
    printf '#!/bin/sh\n# A stand-in of rdma.cluster'\''s lab.\ndepmod %s\nexit 0\n' "$kernel" >"$build/deb/DEBIAN/$script"
    chmod 755 "$build/deb/DEBIAN/$script"
done
mkdir "$TMP/$name"
cp -a "$from/." "$TMP/$name/"
rm -f "$TMP/$name"/DEBS/mlnx-ofed-kernel-dkms_*.deb
dpkg-deb --root-owner-group --build "$build/deb" "$TMP/$name/DEBS/mlnx-ofed-kernel-modules_${version}_amd64.deb" >>"$log" 2>&1 || failed 'dpkg-deb --build'
echo "$kernel" >>"$TMP/$name/.supported_kernels"
echo skip-distro-check >"$TMP/$name/distro"
tar -czf "$TMP/$name.tgz" -C "$TMP" "$name" || failed "tar -czf $name.tgz"
rm -rf "$build" "${TMP:?}/$name"
printf '\033[1;34mCreated %s\033[0;39m\n' "$TMP/$name.tgz"
