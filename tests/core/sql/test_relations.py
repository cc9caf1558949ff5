"""Where a statement names tables by their paths."""

from __future__ import annotations

import pytest
from hypothesis import given

from optimist.core.errors import UsageError
from optimist.core.sql import Parameters, markers_of, path_relations
from sql_statements import conditions

P = "delta.`/p`"
CASES = {  # each relation between « and », and what follows it of version, time or changes
    f"SELECT * FROM «{P}»": [()],
    "select * from «DELTA . `/p`» t join «`delta`.`s3://b/``q`» u on t.a = u.a": [(), ()],
    f"SELECT a, delta.`/p` FROM t, «{P}», (SELECT 1 FROM «{P}») x": [(), ()],
    f"TABLE «{P}»": [()],
    f"FROM «{P}» SELECT a |> WHERE a": [()],
    f"SELECT * FROM (t JOIN «{P}» USING (a))": [()],
    f"SELECT * FROM LATERAL «{P}»": [()],
    f"SELECT 1 WHERE a IN (SELECT a FROM «{P}») ORDER BY 1, delta.`/p`": [()],
    "SELECT * FROM «delta.`/p` VERSION AS OF 3» v": [("3",)],
    "SELECT * FROM «delta.`/p` FOR SYSTEM_VERSION AS OF '3'»": [("'3'",)],
    "SELECT * FROM «delta.`/p` TIMESTAMP AS OF '2026-01-01'» AS t": [("'2026-01-01'",)],
    "SELECT * FROM «delta.`/p` TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY» t": [
        ("current_timestamp() - INTERVAL 1 DAY",)
    ],
    "SELECT * FROM «delta.`/p` TIMESTAMP AS OF TIMESTAMP '2026-01-01' + INTERVAL '1' HOUR», t": [
        ("TIMESTAMP '2026-01-01' + INTERVAL '1' HOUR",)
    ],
    "SELECT * FROM «delta.`/p` TIMESTAMP AS OF (SELECT max(t) FROM u)» WHERE a": [
        ("(SELECT max(t) FROM u)",)
    ],
    "SELECT * FROM «delta.`/p` TIMESTAMP AS OF date_sub(CASE WHEN a THEN b END, 1)» JOIN t": [
        ("date_sub(CASE WHEN a THEN b END, 1)",)
    ],
    "SELECT * FROM «table_changes('delta.`/p`', 1, 2)» t": [("1", "2")],
    "SELECT * FROM «table_changes_by_path('/p', '2026-01-01')»": [("'2026-01-01'",)],
    f"INSERT INTO «{P}» SELECT 1": [()],
    f"INSERT OVERWRITE TABLE «{P}» SELECT 1": [()],
    f"INSERT INTO t SELECT a FROM «{P}»": [()],
    f"MERGE INTO t USING «{P}» s ON a WHEN MATCHED THEN DELETE": [()],
    f"SELECT «delta.`/p`».a FROM «{P}» WHERE «delta.`/p`».b": [(), (), ()],
    "SELECT delta.`/p`.a FROM t delta": [],
    "SELECT 'delta.`/p`', `delta.``/p```, x.delta.`/p` FROM a.delta.`/p` -- FROM delta.`/p`": [],
    "SELECT * FROM delta.t, delta.`t`, table_changes('t', 1), parquet.`/p`": [],
    "SELECT * FROM a.table_changes('delta.`/p`', 1)": [],
}


@pytest.mark.parametrize("marked", CASES)
def test_the_relations_of(marked):
    text = marked.replace("«", "").replace("»", "")
    spans, offset = [], 0
    for place, mark in enumerate(marked):
        if mark in "«»":
            spans.append(place - offset)
            offset += 1
    found = path_relations(text)
    assert [place for item in found for place in item.span] == spans
    told = [
        tuple(sql.sql for sql in (item.version, item.timestamp, *item.changes) if sql is not None)
        for item in found
    ]
    assert told == CASES[marked]


def test_a_target_and_a_qualifier_are_told_apart():
    target, source, qualifier = path_relations(
        "INSERT INTO delta.`/a` SELECT * FROM delta.`/b` WHERE delta.`/b`.c"
    )
    assert (target.is_target, source.is_target, qualifier.is_target) == (True, False, False)
    assert (target.is_qualifier, source.is_qualifier, qualifier.is_qualifier) == (
        False,
        False,
        True,
    )


def test_equal_relations_are_equal_wherever_they_stand():
    first, second, third = path_relations(f"SELECT * FROM {P}, {P}, {P} VERSION AS OF 1")
    assert first == second
    assert first != third


def test_parameters_stand_for_versions():
    text = "SELECT ? FROM delta.`/p` TIMESTAMP AS OF ? WHERE a = ?"
    (found,) = path_relations(text, Parameters(positional=["1", "'t'", "2"]))
    assert found.timestamp.sql == "'t'"
    assert [text[slice(*span)] for span in markers_of(text)] == ["?", "?", "?"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM delta.`/p` VERSION AS OF",
        "SELECT * FROM table_changes('delta.`/p`')",
        "SELECT * FROM table_changes('delta.`/p`', 1, 2, 3)",
        "SELECT 'not closed",
    ],
)
def test_what_can_not_be_read_is_an_error(text):
    with pytest.raises(UsageError, match="can't be parsed"):
        path_relations(text)


@given(conditions, conditions)
def test_a_relation_is_found_among_any_conditions(first, second):
    text = f"SELECT {first} FROM {P} WHERE {second} UNION SELECT * FROM t, {P} VERSION AS OF 1"
    assert [text[slice(*item.span)] for item in path_relations(text)] == [
        P,
        f"{P} VERSION AS OF 1",
    ]
