# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m lab`."""

import sys

from lab.cli import main

sys.exit(main())
