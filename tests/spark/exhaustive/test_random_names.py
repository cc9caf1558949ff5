"""DELETE, UPDATE and MERGE by any names and under any conf change the rows that a model changes.

Drawn are the names of columns, of a field and of both aliases (a column may be called as an alias,
a field, a keyword or a session variable), how they are spelled, the confs, and who runs the
command: the builders or SQL.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from hypothesis import HealthCheck, Phase, assume, given, note, settings
from hypothesis import strategies as st

from exhaustive_cases import in_proportion
from odd_names import quoted
from optimist.core import DeltaLog
from optimist.spark import DeltaTable

EXAMPLES = in_proportion(4)
NAMES = (
    "id", "Id", "v", "s", "t", "source", "target", "x", "x.y", "y", "a b", "ti`ck", "quo'te", '"q"',
    "select", "matched", "not", "key", "value", "element", "default", "current_date", "null",
    "_metadata", "日本", "*", "1",
)  # fmt: skip
CONFS = {
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.caseSensitive": ("true", "false"),
    "spark.sql.ansi.doubleQuotedIdentifiers": ("true", "false"),
    "spark.sql.parser.escapedStringLiterals": ("true", "false"),
    "spark.sql.session.timeZone": ("UTC", "Asia/Tokyo"),
    "spark.optimist.spark.driverShortcut.maxBytes": ("0", "1000000"),
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": ("true", "false"),
}


@dataclass(frozen=True)
class Case:
    """What everything is called, and how it is run.

    Attributes:
        names: Of the key, the value, the struct, its field, the table's alias, the source's.
        other_case: Which of them are spelled in the other case, where case does not count.
        variables: Session variables.
        confs: The session's confs.
        command: DELETE, UPDATE or MERGE.
        by_sql: Whether SQL runs it.
    """

    names: tuple[str, ...]
    other_case: tuple[bool, ...]
    variables: frozenset[str]
    confs: dict[str, str]
    command: str
    by_sql: bool

    @property
    def sql(self):
        """The names as SQL spells them."""
        words = ("key", "value", "struct", "field", "t", "s")
        may_differ = self.confs["spark.sql.caseSensitive"] == "false"
        spelled = (
            name.swapcase() if other and may_differ and name.isascii() else name
            for name, other in zip(self.names, self.other_case, strict=True)
        )
        return dict(zip(words, map(quoted, spelled), strict=True))

    def text(self, template):
        return template.format(**self.sql)

    def rows(self, ids):
        key, value, struct, field, _, _ = self.names
        structs = pa.StructArray.from_arrays([pa.array([f"f{i}" for i in ids])], names=[field])
        numbers = pa.array(list(ids), pa.int64())
        values = pa.array([i * 10 for i in ids], pa.int64())
        return pa.table([numbers, values, structs], names=[key, value, struct])


def are_distinct(names):
    return len({name.lower() for name in names}) == len(names)


CASES = st.builds(
    Case,
    names=st.tuples(*[st.sampled_from(NAMES)] * 6).filter(
        lambda names: are_distinct(names[:3]) and are_distinct(names[4:])
    ),
    other_case=st.tuples(*[st.booleans()] * 6),
    variables=st.frozensets(st.sampled_from(NAMES), max_size=3),
    confs=st.fixed_dictionaries({key: st.sampled_from(each) for key, each in CONFS.items()}),
    command=st.sampled_from(["delete", "update", "merge"]),
    by_sql=st.booleans(),
)
CONDITION = "{t}.{key} % 3 = 1 AND {value} >= 0 AND {t}.{struct}.{field} <> 'none'"
SET = {"{t}.{value}": "{t}.{key} + {t}.{value}", "{t}.{struct}.{field}": "concat('n', {key})"}
JOIN = "{t}.{key} = {s}.{key} AND {t}.{struct}.{field} = {s}.{struct}.{field}"
MATCHED = {"{value}": "{s}.{value} + {t}.{value} + 1"}
NOT_MATCHED = {"{key}": "{s}.{key}", "{value}": "{value} - 1", "{struct}": "{s}.{struct}"}
BY_SOURCE = "{t}.{key} = 0"


def expected(command):
    rows = {i: (i * 10, f"f{i}") for i in range(6)}
    chosen = [i for i in rows if i % 3 == 1]
    if command == "delete":
        return {i: row for i, row in rows.items() if i not in chosen}
    if command == "update":
        return rows | {i: (i * 11, f"n{i}") for i in chosen}
    changed = {i: (i * 20 + 1, f"f{i}") for i in (4, 5)}
    new = {i: (i * 10 - 1, f"f{i}") for i in (6, 7)}
    return {i: row for i, row in (rows | changed | new).items() if i != 0}


def run(spark, path, case):
    def texts(pairs):
        return {case.text(name): case.text(value) for name, value in pairs.items()}

    condition, join = case.text(CONDITION), case.text(JOIN)
    source = spark.createDataFrame(case.rows(range(4, 8)))
    target, alias = f"delta.`{path}`", case.names[4]
    if case.by_sql:
        source.createOrReplaceTempView("drawn_source")
        spark.sql(SQL[case.command](case, target, condition, join, texts))
        return
    table = DeltaTable.forPath(spark, path).alias(alias)
    if case.command == "delete":
        table.delete(condition)
    elif case.command == "update":
        table.update(condition, texts(SET))
    else:
        merge = table.merge(source.alias(case.names[5]), join)
        merge = merge.whenMatchedUpdate(None, texts(MATCHED))
        merge = merge.whenNotMatchedInsert(None, texts(NOT_MATCHED))
        merge.whenNotMatchedBySourceDelete(case.text(BY_SOURCE)).execute()


def assigned(pairs):
    return ", ".join(f"{name} = {value}" for name, value in pairs.items())


def merge_statement(case, target, _, join, texts):
    new = texts(NOT_MATCHED)
    return (
        f"MERGE INTO {target} AS {case.sql['t']} USING drawn_source AS {case.sql['s']} ON {join} "
        f"WHEN MATCHED THEN UPDATE SET {assigned(texts(MATCHED))} "
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(new)}) VALUES ({', '.join(new.values())}) "
        f"WHEN NOT MATCHED BY SOURCE AND {case.text(BY_SOURCE)} THEN DELETE"
    )


SQL = {
    "delete": lambda case, target, condition, *_: (
        f"DELETE FROM {target} AS {case.sql['t']} WHERE {condition}"
    ),
    "update": lambda case, target, condition, _, texts: (
        f"UPDATE {target} AS {case.sql['t']} SET {assigned(texts(SET))} WHERE {condition}"
    ),
    "merge": merge_statement,
}


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes minutes
    suppress_health_check=list(HealthCheck),
)
@given(CASES)
def test_a_command_means_the_same_whatever_things_are_called(
    enabled, tmp_path_factory, every_plane, case
):
    assume(len({name.lower() for name in case.variables}) == len(case.variables))
    path = str(tmp_path_factory.mktemp("named") / "t")
    note(f"{path} on {every_plane}")
    before = {key: enabled.conf.get(key, None) for key in CONFS}
    try:
        for key, value in case.confs.items():
            enabled.conf.set(key, value)
        for name in case.variables:
            enabled.sql(f"DECLARE OR REPLACE VARIABLE {quoted(name)} INT DEFAULT 99")
        mapped = {"delta.columnMapping.mode": "name"}
        log = DeltaLog.for_path(path)
        DeltaTable.createIfNotExists(enabled).location(path).addColumns(
            enabled.createDataFrame(case.rows(range(1))).schema
        ).property("delta.columnMapping.mode", mapped["delta.columnMapping.mode"]).execute()
        log.append(case.rows(range(3)))
        log.append(case.rows(range(3, 6)))
        run(enabled, path, case)
        found = log.to_arrow().to_pylist()
        key, value, struct, field, _, _ = case.names
        assert {row[key]: (row[value], row[struct][field]) for row in found} == expected(
            case.command
        )
        assert len(found) == len(expected(case.command))
    finally:
        for name in case.variables:
            enabled.sql(f"DROP TEMPORARY VARIABLE IF EXISTS {quoted(name)}")
        for key, value in before.items():
            if value is None:
                enabled.conf.unset(key)
            else:
                enabled.conf.set(key, value)
