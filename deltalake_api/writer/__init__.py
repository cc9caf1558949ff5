"""Writing as deltalake has it: `write_deltalake`, `convert_to_deltalake`, properties of files.

The names are imported on first use: a table needs the properties, and the writers need the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimist.core.imports import names_by_need

if TYPE_CHECKING:
    from optimist.deltalake.writer.convert_to import convert_to_deltalake
    from optimist.deltalake.writer.properties import (
        BloomFilterProperties,
        ColumnProperties,
        WriterProperties,
    )
    from optimist.deltalake.writer.writer import write_deltalake

__all__ = [
    "BloomFilterProperties",
    "ColumnProperties",
    "WriterProperties",
    "convert_to_deltalake",
    "write_deltalake",
]

_MODULES = {
    "BloomFilterProperties": "optimist.deltalake.writer.properties",
    "ColumnProperties": "optimist.deltalake.writer.properties",
    "WriterProperties": "optimist.deltalake.writer.properties",
    "convert_to_deltalake": "optimist.deltalake.writer.convert_to",
    "write_deltalake": "optimist.deltalake.writer.writer",
}
__getattr__ = names_by_need(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
