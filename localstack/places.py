"""Where installed servers, their logs and the state file are."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["LOGS", "RECIPES", "ROOT", "SERVERS", "STATE", "log_file", "scratch_folder"]

ROOT = Path(__file__).resolve().parent.parent
RECIPES = ROOT / "localstack" / "recipes"
# Not under build/: `make clean` should not cost ten minutes of installing.
SERVERS = Path(os.environ.get("EMULATORS_HOME", ROOT / "localstack" / ".servers")).resolve()

_RUN = ROOT / "build" / "localstack"
LOGS = _RUN / "logs"
STATE = _RUN / "state.json"


def log_file(name: str) -> Path:
    """Return the log file of a server, or of its installation for `NAME-install`."""
    return LOGS / f"{name}.log"


def scratch_folder(name: str) -> Path:
    """Return the directory that a server may write to, emptied before each start."""
    return _RUN / "scratch" / name
