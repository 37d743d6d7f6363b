#!/bin/sh
# A stand-in of rdma.cluster's lab for the uninstall.sh beside the installer.
exec /usr/sbin/ofed_uninstall.sh "$@"
