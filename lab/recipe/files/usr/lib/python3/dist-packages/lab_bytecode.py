# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps the bytecode of what Ansible sends. lab.pth imports this in every Python of an emulated machine.

Ansible sends a module as a zip archive of sources, and Python compiles all of them each time: it keeps no bytecode for what it
imports from an archive. An emulated processor needs a second or two for that, with every task. Only root writes and reads here.
"""

import _imp
import marshal
import os
import zipimport

FOLDER = "/var/cache/lab-bytecode"
compile_source = zipimport._compile_source  # type: ignore[attr-defined]


def kept(pathname: str, source: bytes) -> object:
    """Return the code of a source, as zipimport._compile_source() of CPython 3.8 to 3.13 does."""
    name = os.path.join(FOLDER, _imp.source_hash(0, source).hex())
    try:
        with open(name, "rb") as found:
            return marshal.loads(found.read())  # noqa: S302
    except (OSError, EOFError, ValueError, TypeError):
        pass
    code = compile_source(pathname, source)
    try:
        with open(f"{name}.{os.getpid()}", "wb") as file:
            file.write(marshal.dumps(code))
        os.replace(file.name, name)
    except OSError:
        pass
    return code


zipimport._compile_source = kept  # type: ignore[attr-defined]
