# Copyright (c) 2026, the rdma.cluster authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation site. `make docs` builds it from the Markdown of the repository and the documentation of modules and roles."""

project = "rdma.cluster"
copyright = "2026, the rdma.cluster authors"  # noqa: A001
root_doc = "docs/index"
exclude_patterns = ["inventories", "plugins"]
extensions = ["myst_parser", "sphinx_antsibull_ext"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
html_theme = "furo"
html_title = "rdma.cluster"
html_show_sphinx = False
