"""Tables of Iceberg on a local disk, made by pyiceberg with a catalog in SQLite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

__all__ = ["IcebergFolder"]


class IcebergFolder:
    """A folder for tables.

    Args:
        folder: Where they are to be.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.catalog = SqlCatalog(
            "made", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}"
        )
        self.catalog.create_namespace("db")

    def create(self, name: str, schema: Any, **given: Any) -> Table:
        """Make a table in the directory `db/<name>`."""
        return self.catalog.create_table(f"db.{name}", schema, **given)

    def close(self) -> None:
        """Let go of the catalog."""
        self.catalog.close()
