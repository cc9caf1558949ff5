"""`_metadata` of our scans: Spark's own fields, and the identity of rows (spec 6.5).

Spark gives every file scan a hidden column `_metadata`. It is lost where two scans are united, and
knows nothing of row tracking. So where a scan is more than one relation, or its table tracks rows,
the column is made here, and hidden: no `*` shows it, and a query that names it gets it. In sessions
of the drop-in a node of ours does so (`drop_in/java/HiddenMetadata.java`), elsewhere the way in
which Spark hides the columns of natural joins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as st

from optimist.core.snapshot.files_view import FilesView
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.jvm import Jvm, analyzed_plan

__all__ = ["ROW_INDEX", "RowTracking", "metadata_column", "with_hidden_metadata", "with_row_index"]

ROW_INDEX = st.StructField("_tmp_metadata_row_index", st.LongType())
"""A column that no file has: Spark's Parquet reader puts the row's index into one of this name.

As a stored column it costs less than `_metadata.row_index`, for which Spark makes a struct per row.
A relation can't have both, for the reader fills only one: see `with_row_index`.
"""

_NAME = "_metadata"
_ROW_INDEX = "row_index"
_MARK = {"__metadata_col": _NAME}
_FIELDS = (
    "file_path",
    "file_name",
    "file_size",
    "file_block_start",
    "file_block_length",
    "file_modification_time",
)
_SESSIONS = "optimist.dropin.Sessions"
"""Of the drop-in, which may be there."""
_BASE_ROW_ID, _COMMIT_VERSION = "__optimist_base_row_id", "__optimist_commit_version"


@dataclass(frozen=True, slots=True)
class RowTracking:
    """Where a table that tracks its rows keeps their ids and versions (spec 6.5).

    Attributes:
        row_id_column: The physical name of the column with the ids of rows that were moved from
            file to file; None where there is none.
        commit_version_column: The same for the versions of their last change.
    """

    row_id_column: str | None
    commit_version_column: str | None

    @classmethod
    def of(cls, view: FilesView) -> RowTracking | None:
        """The row tracking of a version; None if it is off."""
        if not view.has_active("rowTracking"):
            return None
        properties = view.properties
        return cls(
            properties.materialized_row_id_column, properties.materialized_row_commit_version_column
        )

    @property
    def stored_fields(self) -> list[st.StructField]:
        """The columns that files may have beside the table's own."""
        names = (self.row_id_column, self.commit_version_column)
        return [st.StructField(name, st.LongType()) for name in names if name is not None]

    @property
    def constant_fields(self) -> list[st.StructField]:
        """The hidden partition columns that hold the columns of `constants`."""
        return [st.StructField(name, st.LongType()) for name in (_BASE_ROW_ID, _COMMIT_VERSION)]

    @staticmethod
    def constants(files: pa.Table) -> pa.Table:
        """What the log says of each file: the id of its first row, and its version."""
        columns = [files["baseRowId"], files["defaultRowCommitVersion"]]
        return pa.table(columns, names=[_BASE_ROW_ID, _COMMIT_VERSION])

    def fields(self, row_index: str) -> dict[str, str]:
        """`row_id` and `row_commit_version` of the rows of a relation, as SQL."""
        row_id = f"{_BASE_ROW_ID} + {row_index}"
        return {
            "row_id": _first_known(self.row_id_column, row_id),
            "row_commit_version": _first_known(self.commit_version_column, _COMMIT_VERSION),
        }


def with_row_index(jvm: Jvm, frame: DataFrame) -> DataFrame:
    """A relation that has `ROW_INDEX`, with the rest of Spark's `_metadata` as a plain column."""
    plan = analyzed_plan(frame)
    metadata = plan.metadataOutput().head()
    narrowed = metadata.withDataType(metadata.dataType().apply(jvm.seq(_FIELDS).toSet()))
    return jvm.frame(_showing(jvm, plan, narrowed))


def metadata_column(jvm: Jvm, frame: DataFrame, tracking: RowTracking | None) -> Column:
    """`_metadata` for the rows of a relation, as a plain column."""
    is_stored = ROW_INDEX.name in frame.columns
    # Spark gives its column another name where the table has one of that name.
    name = frame.columns[-1] if is_stored else analyzed_plan(frame).metadataOutput().head().name()
    row_index = ROW_INDEX.name if is_stored else f"{name}.{_ROW_INDEX}"
    fields = {field: f"{name}.{field}" for field in _FIELDS} | {_ROW_INDEX: row_index}
    if tracking is not None:
        fields |= tracking.fields(row_index)
    # As one text: each step of an expression built in Python is a round trip to the JVM.
    pairs = ", ".join(f"'{field}', {value}" for field, value in fields.items())
    return jvm.column(jvm.parsed(f"named_struct({pairs})")).alias(_NAME, metadata=_MARK)


def with_hidden_metadata(jvm: Jvm, frame: DataFrame) -> DataFrame:
    """The frame, whose last column is `metadata_column`, with that column hidden."""
    plan = analyzed_plan(frame)
    if jvm.has_class(_SESSIONS) and jvm.root.optimist.dropin.Sessions.isEnabled(jvm.session):
        # Its rules know a node that tells two sides of a join apart, which Spark's own does not.
        return jvm.frame(jvm.root.optimist.dropin.HiddenMetadata(plan, False))
    logical = jvm.catalyst.plans.logical
    output = plan.output()
    project = logical.Project(output.init(), plan)
    project.setTagValue(logical.Project.hiddenOutputTag(), jvm.seq([output.last()]))
    return jvm.frame(project)


def _showing(jvm: Jvm, plan: Any, column: Any) -> Any:
    """A relation that has one more column, also below the padding of its `char` columns."""
    parts = [plan.productElement(at) for at in range(plan.productArity())]
    if plan.children().isEmpty():
        # The constructor differs between Spark's versions, but `output` is always its second.
        parts[1] = parts[1].appended(column)
    else:
        columns, child = parts
        parts = [columns.appended(column), _showing(jvm, child, column)]
    return plan.makeCopy(jvm.array(jvm.root.Object, parts))


def _first_known(stored: str | None, otherwise: str) -> str:
    return otherwise if stored is None else f"coalesce({quoted(stored)}, {otherwise})"
