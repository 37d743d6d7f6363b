# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins: small programs and packages that behave like a vendor's, for machines without the vendor's hardware and downloads."""
