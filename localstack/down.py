"""Stop the emulators that `up.py` started: all, or those named."""

from __future__ import annotations

import sys

from up import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main(["--stop", *sys.argv[1:]]))
