# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What replaces a Python package that a control node may not have."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from ansible.errors import AnsibleError


class Missing:
    """Replaces a package, or a class of it, that is missing. It fails with the remedy on first use, so that the rest can be imported.

    package: its name on PyPI; user: what needs it, as the subject of a sentence: "The fabric stage".
    """

    def __init__(self, package: str, user: str, why: ImportError) -> None:
        self._package, self._user, self._why = package, user, why

    def __getattr__(self, name: str) -> NoReturn:
        """Raise AnsibleError for every attribute."""
        self._fail()

    def __call__(self, *_arguments: Any, **_named: Any) -> NoReturn:
        """Raise AnsibleError for every call."""
        self._fail()

    def _fail(self) -> NoReturn:
        what = f"{self._user} needs {self._package} on the control node. Run `{sys.executable} -m pip install {self._package}`."
        raise AnsibleError(what) from self._why
