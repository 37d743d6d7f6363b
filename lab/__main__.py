# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the lab's command line: `python -m lab`."""

import sys

try:
    from lab.cli import main
except ModuleNotFoundError as error:
    sys.exit(f"lab: the Python package {error.name} is missing; `make venv` makes an environment that has it.")

sys.exit(main())
