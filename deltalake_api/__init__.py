"""The names of deltalake 1.6 over Optimist: change the import, and keep the program.

The public names are imported on first use. docs/deltalake.md says how each of them is different.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optimist.core.imports import names_by_need, own_version

if TYPE_CHECKING:
    __version__: str
    from optimist.deltalake.features import TableFeatures
    from optimist.deltalake.query import QueryBuilder
    from optimist.deltalake.schema import DataType, Field, Schema, VariantType
    from optimist.deltalake.table import DeltaTable, Metadata
    from optimist.deltalake.transaction import (
        CommitProperties,
        PostCommitHookProperties,
        Transaction,
    )
    from optimist.deltalake.writer import (
        BloomFilterProperties,
        ColumnProperties,
        WriterProperties,
        convert_to_deltalake,
        write_deltalake,
    )

__all__ = [
    "BloomFilterProperties",
    "ColumnProperties",
    "CommitProperties",
    "DataType",
    "DeltaTable",
    "Field",
    "Metadata",
    "PostCommitHookProperties",
    "QueryBuilder",
    "Schema",
    "TableFeatures",
    "Transaction",
    "VariantType",
    "WriterProperties",
    "convert_to_deltalake",
    "write_deltalake",
]

_MODULES = {
    "BloomFilterProperties": "optimist.deltalake.writer",
    "ColumnProperties": "optimist.deltalake.writer",
    "CommitProperties": "optimist.deltalake.transaction",
    "DataType": "optimist.deltalake.schema",
    "DeltaTable": "optimist.deltalake.table",
    "Field": "optimist.deltalake.schema",
    "Metadata": "optimist.deltalake.table",
    "PostCommitHookProperties": "optimist.deltalake.transaction",
    "QueryBuilder": "optimist.deltalake.query",
    "Schema": "optimist.deltalake.schema",
    "TableFeatures": "optimist.deltalake.features",
    "Transaction": "optimist.deltalake.transaction",
    "VariantType": "optimist.deltalake.schema",
    "WriterProperties": "optimist.deltalake.writer",
    "convert_to_deltalake": "optimist.deltalake.writer",
    "write_deltalake": "optimist.deltalake.writer",
}
_find = names_by_need(__name__, _MODULES)


def __getattr__(name: str) -> Any:
    return own_version() if name == "__version__" else _find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
