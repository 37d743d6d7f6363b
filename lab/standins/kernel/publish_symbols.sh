#!/bin/sh
# A stand-in of rdma.cluster's lab: leaves the modules' symbols where sources of third parties look for them. $1: the kernel.
set -e
folder=/usr/src/ofa_kernel/$(uname -m)/$1
mkdir -p "$folder"
cp Module.symvers "$folder/"
