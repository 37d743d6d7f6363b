"""Stands in for the get-pip script that ansible-test downloads: installs pip from the wheel beside it.

ansible-test keeps that script in a cache, so that putting this one there makes PyPI all that it needs.
"""

import runpy
import sys
from pathlib import Path

here = Path(__file__).parent
sys.path[:0] = [str(wheel) for wheel in here.glob("pip-*.whl")]
# Options of get-pip that pip does not know.
words = [word for word in sys.argv[1:] if word not in {"--no-setuptools", "--no-wheel"}]
sys.argv[1:] = ["install", "--no-index", "--find-links", str(here), *words]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
