# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m lab.standins`."""

import sys

from lab.standins.cli import main

sys.exit(main())
