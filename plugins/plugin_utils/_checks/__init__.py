# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of one host by its facts, one folder for each stage; _fleet, _fabric, _pairs, _collectives and _nccl have the others."""
