"""A scan of rows as a dataset of pyarrow, by which DuckDB and Polars pass filters and columns down.

Both ask a dataset for one thing, its `scanner`. So this dataset has a scanner of its own, which
reads with deletion vectors, column mapping and type widening like every read of a table. It has no
files that Arrow could read past it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from optimist.core.errors import UsageError
from optimist.core.errors.argument_types import ensure_kind, wrong_type
from optimist.core.predicates import Predicate
from optimist.core.schema.types import StructType
from optimist.core.snapshot.arrow_filter import translate_filter

__all__ = ["RowDataset"]

_PLACES = ("__filename", "__fragment_index", "__batch_index", "__last_in_fragment")
"""The columns that Arrow adds to a dataset of files."""
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
"""A text in an expression of Arrow."""
_NO_FILE = "rows-of-a-scan-come-from-its-method-scanner"


def _refused(name: str) -> Callable[..., NoReturn]:
    def method(*_: object, **__: object) -> NoReturn:
        """Refuse what would read the files of the table past the scan."""
        raise _not_there(
            name, "Use its scanner, to_table, to_batches, head, take or count_rows, or the scan."
        )

    return method


def _not_there(name: str, remedy: str) -> UsageError:
    return UsageError(
        f"The dataset of a scan has no {name}. Nothing was read. {remedy}",
        kind="OPTIMIST_NOT_BUILT_YET",
        command=name,
    )


def _ensure_columns(columns: object) -> None:
    names = columns if isinstance(columns, list | tuple | dict) else (None,)
    if not all(isinstance(name, str) for name in names):
        raise wrong_type("columns", columns, "a list of names, or a dict of names and expressions")
    if isinstance(columns, dict) and not all(
        isinstance(each, ds.Expression) for each in columns.values()
    ):
        raise wrong_type("columns", columns, "a dict of names and expressions of pyarrow")


class RowDataset(ds.FileSystemDataset):  # type: ignore[misc]  # pyarrow has no types
    """The rows of a scan as a dataset: `scanner` and what pyarrow builds on it.

    Args:
        schema: The columns.
        table: The columns of the table, which a filter may name.
        batches: Reads the rows of some columns (None for all) and of a predicate.
    """

    def __init__(
        self,
        schema: pa.Schema,
        table: StructType,
        batches: Callable[[list[str] | None, Predicate, int | None], Iterator[pa.RecordBatch]],
    ) -> None:
        # Code of Arrow that goes round `scanner` gets an error about this file, never no rows.
        parquet = ds.ParquetFileFormat()
        fragment = parquet.make_fragment(_NO_FILE, filesystem=fs.LocalFileSystem())
        super().__init__([fragment], schema, parquet)
        self._table = table
        self._batches = batches

    def __repr__(self) -> str:
        return f"RowDataset({len(self.schema)} columns)"

    def scanner(self, columns: Any = None, filter: Any = None, **options: Any) -> ds.Scanner:
        """Return a scanner of the rows, which reads only the files and columns that it needs.

        Args:
            columns: A list of names, or a mapping of names to expressions, as pyarrow has them.
            filter: An expression of pyarrow.
            options: What else pyarrow takes; of these, `batch_size` and `use_threads` count.
        """
        if columns is not None:
            _ensure_columns(columns)
        pushed = Predicate.TRUE
        if filter is not None:
            ensure_kind(filter, "filter", ds.Expression, "an expression of pyarrow")
            pushed = translate_filter(filter, self.schema, self._table)
        needed = self._needed(columns, filter)
        schema = self.schema if needed is None else pa.schema(map(self.schema.field, needed))
        reader = pa.RecordBatchReader.from_batches(schema, self._batches(needed, pushed, None))
        kept = {name: options[name] for name in ("batch_size", "use_threads") if name in options}
        return ds.Scanner.from_batches(reader, columns=columns, filter=filter, **kept)

    def _needed(self, columns: Any, condition: Any) -> list[str] | None:
        """Return the columns to read in the order of the schema, or None for all of them."""
        texts = [] if condition is None else [str(condition)]
        if isinstance(columns, dict):
            texts += [str(each) for each in columns.values()]
        named = list(columns) if isinstance(columns, list | tuple) else []
        names = self.schema.names
        bare = [_TEXT.sub("", text) for text in texts]
        for name in _PLACES:  # Arrow would invent values for them
            if name not in names and (name in named or any(name in text for text in bare)):
                raise _not_there(f"column {name}", "Leave it out.")
        if columns is None:
            return None
        if any("FieldPath" in text for text in texts):  # by position
            return None
        # A column that an expression names is a part of its text. What is read in vain does no
        # harm.
        found = [name for name in names if name in named or any(name in t for t in texts)]
        return found or names[:1]  # a scanner counts rows by some column

    filter = _refused("filter")
    get_fragments = _refused("get_fragments")
    join = _refused("join")
    join_asof = _refused("join_asof")
    replace_schema = _refused("replace_schema")
    sort_by = _refused("sort_by")
    __reduce__ = _refused("pickling")
