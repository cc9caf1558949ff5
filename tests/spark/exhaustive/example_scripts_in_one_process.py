"""Run by test_example_scripts_in_processes.py: what each script prints goes into a file."""

from __future__ import annotations

import contextlib
import runpy
import sys
from pathlib import Path

_EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "drop_in"
_FOLDER, *_NAMES = sys.argv[1:]

for _name in _NAMES:
    with (
        Path(_FOLDER, _name).open("w", encoding="utf-8") as _printed,
        contextlib.redirect_stdout(_printed),
    ):
        runpy.run_path(str(_EXAMPLES / f"{_name}.py"), run_name="__main__")
