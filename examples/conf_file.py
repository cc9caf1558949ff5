"""Files of Spark conf keys, one per line, in the form of `spark-defaults.conf`.

After the key come blanks, tabs or `=`, then the value, taken as it stands: dollars, tabs and equals
signs in it have no meaning. Only `${EMULATOR_...}` is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["read_conf"]

_ENTRY = re.compile(r"\s*(?P<key>[^\s#=][^\s=]*)(?:\s*=\s*|\s+)(?P<value>.*?)\s*")
_ADDRESS = re.compile(r"\$\{(EMULATOR_\w+)\}")


def read_conf(path: Path, addresses: Mapping[str, str]) -> dict[str, str]:
    """Return the entries of a conf file, with the addresses filled in.

    Raises:
        KeyError: The file names an address that is not among `addresses`.
    """
    entries = map(_ENTRY.fullmatch, path.read_text().splitlines())
    return {
        entry["key"]: _ADDRESS.sub(lambda name: addresses[name[1]], entry["value"])
        for entry in entries
        if entry
    }
