#!/usr/bin/env bash
# Prints "VERSION PATH" for each Python version given that is there: the real program, since a pyenv shim
# is found on PATH but need not start, and a virtual environment's link hides what it was made of.
set -euo pipefail
shopt -s nullglob

for version in "$@"; do
    for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*"/bin/python$version" "$HOME"/.local/share/uv/python/cpython-"$version".*"/bin/python$version"; do
        if path=$("$candidate" -c 'import os, sys; print(os.path.realpath(sys.executable))' 2>/dev/null); then
            echo "$version $path"
            break
        fi
    done
done
