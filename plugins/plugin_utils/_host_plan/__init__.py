# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""rdma_host_plan: the parts of all roles in one value, made once by observe, stored in the run folder and read by the lookup."""
