# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The managers of a host's network that can apply a rail's address and MTU at boot: systemd-networkd, NetworkManager and netplan."""
