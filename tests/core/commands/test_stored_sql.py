"""SQL that is put into the log: other engines read it, or nothing is written."""

from __future__ import annotations

import datetime as dt
from random import Random  # noqa: TID251 - a case is its seed

import pyarrow as pa
import pytest
from deltalake import DeltaTable as OtherTable
from deltalake import write_deltalake

from altered_tables import MAPPED, commit_metadata
from optimist.core import DeltaLog
from optimist.core.commands.stored_sql import canonical_sql
from optimist.core.errors import OptimistError
from optimist.core.requests.columns import ColumnChange
from optimist.core.requests.table_definition import Column
from optimist.core.schema.types import PrimitiveType, StructField, StructType
from random_expressions import changed_meaning, random_text
from refusals import fails

ADDRESS = "struct<City: string, zip: bigint>"
COLUMNS = [
    Column("id", "bigint"),
    Column("Name", "string"),
    Column("day", "date"),
    Column("adress", ADDRESS),
    Column("Odd-Name", "int"),
    Column("flag", "boolean"),
]
ROW = {
    "id": [1],
    "Name": ["ab"],
    "day": [dt.date(2024, 2, 3)],
    "adress": [{"City": "X", "zip": 1}],
    "Odd-Name": pa.array([1], pa.int32()),
    "flag": [True],
}
INNER = StructType(
    (StructField("City", PrimitiveType("string")), StructField("zip", PrimitiveType("integer")))
)
SCHEMA = StructType(
    (
        StructField("id", PrimitiveType("long")),
        StructField("Name", PrimitiveType("string")),
        StructField("adress", INNER),
        StructField("Odd Name", PrimitiveType("integer")),
    )
)


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("id > 0", "id > 0"),
        ("  ID  >  0 -- at least", "id  >  0"),
        ("/* c */ id/* d */>0", "id >0"),
        ('name == "x"', "Name = 'x'"),
        ("NAME <> r'x'", "Name <> 'x'"),
        (r"name <> '\u0041'", "Name <> 'A'"),
        (r"name <> 'it\'s'", r"Name <> 'it\'s'"),
        ("!(id = 5)", "NOT (id = 5)"),
        ("ADRESS.city = 'x'", "adress.City = 'x'"),
        ("(`ADRESS`).`city` = 'x'", "(adress).City = 'x'"),
        ("`odd name` > 0", "`Odd Name` > 0"),
        ("id > CAST('1' AS long)", "id > CAST('1' AS BIGINT)"),
        ("id::byte > 0", "id::TINYINT > 0"),
        ("exists(array(ID), Id -> Id > 0)", "exists(array(id), Id -> Id > 0)"),
        ("no sql at", "no sql at"),
        ("name = \"a\"'b'", "Name = 'ab'"),
        ("name = 'a' -- c\n\"b\" r'c'", "Name = 'abc'"),
        ("name = \"a\"'it''s'", "Name = 'a' 'it''s'"),
        ('name COLLATE utf8_binary = "a"', "Name COLLATE utf8_binary = 'a'"),
        ("id > Current_Date", "id > Current_Date()"),
        ("(current_date)=`current_date`", "(current_date())=`current_date`"),
        ("not!(id = 5)", "not NOT (id = 5)"),
        ("id > 1 or!flag", "id > 1 or NOT flag"),
        ("!!(id = 5)", "NOT NOT (id = 5)"),
    ],
)
def test_the_canonical_form_of_a_text(written, stored):
    assert canonical_sql(written, SCHEMA) == stored
    assert canonical_sql(stored, SCHEMA) == stored


def test_the_canonical_form_means_what_the_text_means():
    for seed in range(300):
        text = random_text(Random(seed))
        assert changed_meaning(text) is None, text


def test_a_column_is_a_column_where_a_function_has_its_name():
    schema = StructType((StructField("current_date", PrimitiveType("date")),))
    assert canonical_sql("CURRENT_DATE IS NULL", schema) == "`current_date` IS NULL"
    assert canonical_sql("current_date", StructType(())) == "current_date"  # a default


def test_texts_stay_where_a_session_may_read_them_in_its_own_way():
    assert canonical_sql('NAME == "x"', SCHEMA, keeps_texts=True) == 'Name = "x"'


NO_CONDITIONS = [
    "wrong.id > 0",
    "t.id > 0",
    "id.x > 0",
    "adress.street = 'x'",
    "id > 0;",
    "id > 0; id < 9",
    "NOT id ISNULL",
    "id NOTNULL",
    "~~id > ",
    "id IN (1, 2,)",
    "id > 0 {# c #}",
    "{{ id }} > 0",
    "id > 1e400",
    "id > 99999999999999999999L",
    "id > 0 AS x",
    "id > 0 x",
    "id >",
    "",
    "id",
    "'x'",
    "no_such_function(id) > 0",
    "db.upper(name) = 'X'",
    "upper(name, 1) = 'X'",
    "name = concat_ws()",
    "substring(name) = 'X'",
    "if(flag, id) > 0",
    "hash(*) > 0",
    "struct(adress.*) IS NULL",
    "sum(id) > 0",
    "rand() > 0",
    "explode(array(id)) > 0",
    "row_number() OVER (ORDER BY id) > 0",
    "id IN (SELECT 1)",
    "id > :x",
    "id > ?",
    "id && 1",
    "id ** 2 > 0",
    "id // 2 > 0",
    "id ~ 'x'",
    "name SIMILAR TO 'x'",
    "name GLOB 'x'",
    "id ::int8 > 0",
    "CAST(id AS TIMESTAMP WITH TIME ZONE) > day",
    "id BETWEEN SYMMETRIC 1 AND 2",
    "@x > 0",
    "$1 > 0",
    "id > 0 QUALIFY 1",
    "E'x' = name",
    "id IS NULL IS NULL",
    "id = NOT flag",
    "x'0g' = name",
]


@pytest.mark.parametrize("sql", NO_CONDITIONS)
def test_no_engine_is_left_with_a_constraint_that_it_can_not_read(tmp_path, sql):
    with pytest.raises(OptimistError):
        DeltaLog.for_path(str(tmp_path / "new")).create(
            COLUMNS, properties={"delta.constraints.c": sql}
        )
    assert not list((tmp_path / "new").glob("_delta_log/*"))
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.create(COLUMNS)
    with pytest.raises(OptimistError):
        log.alter.add_constraint("c", sql)
    assert log.snapshot().version == 0
    with pytest.raises(OptimistError):
        generated = Column("g", "boolean", generated_as=sql)
        log.create([*COLUMNS, generated], mode="replace")
    assert log.snapshot().version == 0


CONDITIONS = [
    "ID >= 1 -- at least",
    'NAME = "ab"',
    "!(id = 5) AND flag",
    "Adress.CITY == r'X'",
    "`odd-name` BETWEEN 1 AND 2",
    "id IN (1, 2) OR name LIKE 'x%'",
    "id > CAST('0' AS long)",
    "DAY > DATE '2024-01-01'",
    "id IS NOT NULL AND NOT name IS NULL",
    "id <=> 1",
]


def test_other_engines_read_what_is_stored(tmp_path):
    path = str(tmp_path / "t")
    log = DeltaLog.for_path(path)
    named = {f"delta.constraints.c{at}": sql for at, sql in enumerate(CONDITIONS)}
    log.create(COLUMNS, properties=named)
    rows = pa.table(ROW)
    write_deltalake(path, rows, mode="append")
    broken = rows.set_column(1, "Name", pa.array(["other"]))
    with pytest.raises(Exception, match="validation"):  # deltalake's own
        write_deltalake(path, broken, mode="append")
    assert fails("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", log.append, broken)
    log.append(rows)
    assert OtherTable(path).to_pyarrow_table().num_rows == 2


def test_a_rule_of_another_writer_that_names_no_column_guards_them_all(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.create(COLUMNS, properties=MAPPED)
    log.alter.add_constraint("c", "id > 0")
    configuration = {**log.metadata.configuration, "delta.constraints.c": "wrong.id > 0"}
    commit_metadata(log, configuration=configuration)
    kind = "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"
    fails(kind, log.alter.rename_column, "id", "other")
    fails(kind, log.alter.drop_columns, ["id"])


@pytest.mark.parametrize(
    ("data_type", "sql"),
    [
        ("bigint", "'abc'"),
        ("bigint", "1.5"),
        ("int", "3000000000"),
        ("tinyint", "128"),
        ("boolean", "1"),
        ("boolean", "'true'"),
        ("date", "'2024-13-01'"),
        ("date", "1"),
        ("date", "now()"),
        ("timestamp", "'2024-01-01Z'"),
        ("decimal(3,2)", "10"),
        ("decimal(3,2)", "1.555"),
        ("array<int>", "1"),
        ("int", "id"),
        ("int", "rand()"),
        ("int", "no_such()"),
        ("int", "1,"),
        ("int", "{# x #} 1"),
        ("int", "DEFAULT"),
        ("tinyint", "CAST(NULL AS INT)"),
        ("boolean", "CAST(NULL AS INT)"),
        ("array<int>", "CAST(NULL AS STRING)"),
        ("date", "CAST(NULL AS TIMESTAMP)"),
        ("decimal(5,2)", "CAST(NULL AS INT)"),
    ],
)
def test_a_default_is_a_value_of_its_column(tmp_path, data_type, sql):
    properties = {"delta.feature.allowColumnDefaults": "supported"}
    log = DeltaLog.for_path(str(tmp_path / "t"))
    columns = [Column("id", "int"), Column("c", data_type, default=sql)]
    fails("INVALID_DEFAULT_VALUE", log.create, columns, properties=properties)
    log.create([Column("id", "int"), Column("c", data_type)], properties=properties)
    change = ColumnChange("c", default=sql)
    fails("INVALID_DEFAULT_VALUE", log.alter.change_columns, [change])
    assert log.snapshot().version == 0


@pytest.mark.parametrize(
    ("data_type", "sql"),
    [
        ("bigint", "'7'"),
        ("bigint", "-7"),
        ("tinyint", "-128"),
        ("double", "1"),
        ("decimal(3,2)", "1.5"),
        ("string", '"x"'),
        ("string", "5"),
        ("date", "'2024-01-02'"),
        ("date", "current_date"),
        ("timestamp", "current_timestamp()"),
        ("boolean", "true"),
        ("array<int>", "NULL"),
        ("array<int>", "CAST(NULL AS array<int>)"),
        ("bigint", "CAST(NULL AS INT)"),
        ("string", "CAST(NULL AS DATE)"),
        ("timestamp", "CAST(NULL AS DATE)"),
        ("decimal(5,2)", "CAST(NULL AS DECIMAL(5,2))"),
        ("decimal(5,2)", "CAST(NULL AS TINYINT)"),
    ],
)
def test_a_default_that_its_column_can_hold_is_taken(tmp_path, data_type, sql):
    properties = {"delta.feature.allowColumnDefaults": "supported"}
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.create([Column("c", data_type, default=sql)], properties=properties)
    log.alter.change_columns([ColumnChange("c", default=sql)])
    assert log.snapshot().schema.find("c").metadata["CURRENT_DEFAULT"] == sql.replace('"', "'")
