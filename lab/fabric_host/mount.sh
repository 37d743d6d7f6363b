#!/bin/sh
# Lays the stand-ins of InfiniBand HCAs over this container's /sys: PCI functions and modules that never change, and the devices' own files,
# which the lab rewrites as the simulated ports change. The sysfs below is that of the container's own network namespace.
set -eu
base=/var/lib/lab-fabric
under=/run/lab-sysfs
mkdir -p "$under"
mountpoint -q "$under" || mount -t sysfs -o ro sysfs "$under"
for part in bus class devices module; do
    mount -t overlay -o ro,lowerdir="$base/sys/$part:$under/$part" overlay "/sys/$part"
done
for device in "$base"/live/*; do
    mount --bind -o ro "$device" "$(readlink -f "/sys/class/infiniband/${device##*/}")"
done
# What programs open for verbs. There is nothing behind them.
mkdir -p /dev/infiniband
for node in /sys/class/infiniband_verbs/uverbs* rdma_cm; do
    install -m 0666 /dev/null "/dev/infiniband/${node##*/}"
done
