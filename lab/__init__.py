# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab: a small RDMA cluster inside one machine, made of QEMU machines or nspawn containers."""
