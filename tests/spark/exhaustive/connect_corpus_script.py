"""Run by test_corpus_connect.py in a process of its own: prints what happened as JSON lines.

A session of Spark Connect can't live beside a classic one.
"""

from __future__ import annotations

import shutil
import sys

from pyspark.sql import SparkSession

import corpus
import corpus_changes
from connect_process import tell
from optimist.core.errors import OptimistError
from optimist.spark import enable

EVERY = 4
"""Of the queries, each of which costs the client and the server about a quarter of a second."""
_REFUSED = ("OPTIMIST_UNSUPPORTED_STATEMENT", "OPTIMIST_CATALOG_NAMES_UNSUPPORTED")
_BY_OTHER_NAMES = {
    ("NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION", "CAST_OVERFLOW_IN_TABLE_INSERT"),
    ("DELTA_CANNOT_REPLACE_MISSING_TABLE", "TABLE_OR_VIEW_NOT_FOUND"),
    ("DELTA_COLUMN_NOT_FOUND", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ("DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ("DELTA_DUPLICATE_COLUMNS_FOUND", "COLUMN_ALREADY_EXISTS"),
    ("DELTA_DUPLICATE_COLUMNS_FOUND", "FIELD_ALREADY_EXISTS"),
    ("DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP", "IDENTITY_COLUMNS_ILLEGAL_STEP"),
    ("DELTA_NEW_NOT_NULL_VIOLATION", "_LEGACY_ERROR_TEMP_2330"),
    ("DELTA_TABLE_ALREADY_EXISTS", "TABLE_OR_VIEW_ALREADY_EXISTS"),
    ("DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP", "NOT_SUPPORTED_CHANGE_COLUMN"),
}
"""On classic sessions Spark's analyzer comes before us, and says these in words of its own."""


def tell_queries(spark: SparkSession, folder: str) -> None:
    """Queries that are answered otherwise than by classic Spark over the plain rows."""
    names = corpus.make_tables(spark, folder)
    wrong = []
    for query, rows in list(zip(corpus.queries(), corpus.expected(), strict=True))[::EVERY]:
        found = corpus.told(spark.sql(corpus.with_names(query, names)))
        if corpus.ordered(query, found) != corpus.ordered(query, rows):
            wrong.append([query, found, rows])
    tell("queries", wrong)


def tell_errors(spark: SparkSession, folder: str) -> None:
    """Statements that are refused otherwise than on classic sessions."""
    names = corpus.make_tables(spark, f"{folder}/errors")
    wrong = []
    for line in (corpus.FOLDER / "errors.txt").read_text(encoding="utf-8").splitlines():
        kind, text = line.split("\t")
        try:
            spark.sql(corpus.with_names(text.replace("\\n", "\n"), names))
        except OptimistError as error:
            if error.kind not in (kind, *_REFUSED):
                wrong.append([text, error.kind, kind])
        else:
            wrong.append([text, None, kind])
    tell("errors", wrong)


def tell_changes(spark: SparkSession, folder: str) -> None:
    """Cases that end otherwise than expected, and the first words of what is refused by name.

    A case ends with the first statement that is refused: what follows builds on it.
    """
    corpus_changes.make_table(f"{folder}/first")
    wrong, refused = [], set()
    for number, case in enumerate(corpus_changes.cases()):
        if any("DROP TABLE" in line.text for line in case.lines):
            continue  # by names only
        copy = shutil.copytree(f"{folder}/first", f"{folder}/case {number}/t")
        names = {"t": f"delta.`{copy}`", "n": f"delta.`{copy}/../n`", "folder": str(copy)}
        for text, found, wanted in corpus_changes.differences(spark.sql, case, names):
            if found in _REFUSED:
                refused.add(" ".join(text.split()[:2]).partition(" delta.")[0])
                break
            is_error = isinstance(found, str) and isinstance(wanted, str)
            if not is_error or (found, wanted) not in _BY_OTHER_NAMES:
                wrong.append([text, found, wanted])
    tell("changes", wrong)
    tell("refused", sorted(refused))


def main(folder: str) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    enable(spark)
    tell_changes(spark, f"{folder}/changes")
    tell_errors(spark, folder)
    tell_queries(spark, f"{folder}/queries")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
