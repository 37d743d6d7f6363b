#!/bin/sh
# A stand-in of rdma.cluster's lab: $1 is a kernel that is installed; it gets the module that was built for it.
set -eu
module=/usr/lib/standin-qos/$1/standin_qos.ko
if [ -e "$module" ]; then
    install -D -m 0644 "$module" "/lib/modules/$1/updates/standin_qos.ko"
    depmod "$1"
fi
