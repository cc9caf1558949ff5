"""`_metadata` of our scans: Spark's own fields, and the identity of rows (spec 6.5).

Spark gives every file scan a hidden column `_metadata`. A union of two scans loses it, and it knows
nothing of row tracking. So if a scan has more than one relation, or its table tracks rows, the
column is made and hidden here: `*` does not show it, but a query may name it. In sessions of the
drop-in our own node hides it (`drop_in/java/HiddenMetadata.java`). Elsewhere it is hidden as Spark
hides the columns of natural joins.
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
"""A column that no file has: Spark's Parquet reader fills a column of this name with the row's
index. As a stored column it costs less than `_metadata.row_index`, for which Spark makes a struct
per row. A relation can't have both, since the reader fills only one: see `with_row_index`.
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
"""A class of the drop-in, if it is enabled."""
_BASE_ROW_ID, _COMMIT_VERSION = "__optimist_base_row_id", "__optimist_commit_version"


@dataclass(frozen=True, slots=True)
class RowTracking:
    """The columns in which a table that tracks its rows keeps ids and versions (spec 6.5).

    Attributes:
        row_id_column: The physical name of the column with the ids of rows that were moved between
            files; None without such a column.
        commit_version_column: The physical name of the column with the versions of their last
            change, or None.
    """

    row_id_column: str | None
    commit_version_column: str | None

    @classmethod
    def of(cls, view: FilesView) -> RowTracking | None:
        """Return the row tracking of a version, or None if it is off."""
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
        """Return the log's values for each file: the id of its first row, and its version."""
        columns = [files["baseRowId"], files["defaultRowCommitVersion"]]
        return pa.table(columns, names=[_BASE_ROW_ID, _COMMIT_VERSION])

    def fields(self, row_index: str) -> dict[str, str]:
        """Return the SQL of `row_id` and `row_commit_version` for the rows of a relation."""
        row_id = f"{_BASE_ROW_ID} + {row_index}"
        return {
            "row_id": _first_known(self.row_id_column, row_id),
            "row_commit_version": _first_known(self.commit_version_column, _COMMIT_VERSION),
        }


def with_row_index(jvm: Jvm, frame: DataFrame) -> DataFrame:
    """Return a relation with `ROW_INDEX`, and the rest of Spark's `_metadata` as a plain column."""
    plan = analyzed_plan(frame)
    metadata = plan.metadataOutput().head()
    narrowed = metadata.withDataType(metadata.dataType().apply(jvm.seq(_FIELDS).toSet()))
    return jvm.frame(_add_output(jvm, plan, narrowed))


def metadata_column(jvm: Jvm, frame: DataFrame, tracking: RowTracking | None) -> Column:
    """Return `_metadata` for the rows of a relation, as a plain column."""
    is_stored = ROW_INDEX.name in frame.columns
    # Spark gives its column another name if the table has a column `_metadata`.
    name = frame.columns[-1] if is_stored else analyzed_plan(frame).metadataOutput().head().name()
    row_index = ROW_INDEX.name if is_stored else f"{name}.{_ROW_INDEX}"
    fields = {field: f"{name}.{field}" for field in _FIELDS} | {_ROW_INDEX: row_index}
    if tracking is not None:
        fields |= tracking.fields(row_index)
    # As one text: each step of an expression built in Python is a round trip to the JVM.
    pairs = ", ".join(f"'{field}', {value}" for field, value in fields.items())
    return jvm.column(jvm.parsed(f"named_struct({pairs})")).alias(_NAME, metadata=_MARK)


def with_hidden_metadata(jvm: Jvm, frame: DataFrame) -> DataFrame:
    """Hide the last column of a frame, which is `metadata_column`."""
    plan = analyzed_plan(frame)
    if jvm.has_class(_SESSIONS) and jvm.root.optimist.dropin.Sessions.isEnabled(jvm.session):
        # The drop-in's rules know a node that tells two sides of a join apart; Spark's own node
        # does not.
        return jvm.frame(jvm.root.optimist.dropin.HiddenMetadata(plan, False))
    logical = jvm.catalyst.plans.logical
    output = plan.output()
    project = logical.Project(output.init(), plan)
    project.setTagValue(logical.Project.hiddenOutputTag(), jvm.seq([output.last()]))
    return jvm.frame(project)


def _add_output(jvm: Jvm, plan: Any, column: Any) -> Any:
    """Add a column to a relation, also below the padding of its `char` columns."""
    parts = [plan.productElement(at) for at in range(plan.productArity())]
    if plan.children().isEmpty():
        # The constructor differs between Spark's versions, but `output` is always its second
        # argument.
        parts[1] = parts[1].appended(column)
    else:
        columns, child = parts
        parts = [columns.appended(column), _add_output(jvm, child, column)]
    return plan.makeCopy(jvm.array(jvm.root.Object, parts))


def _first_known(stored: str | None, otherwise: str) -> str:
    return otherwise if stored is None else f"coalesce({quoted(stored)}, {otherwise})"
