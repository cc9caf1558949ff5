"""Files whose types are not those of the table: narrower, of declared lengths, variants."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from grown_tables import ID, GrownTable
from hand_made_tables import field, struct_of
from optimist.spark import read

WIDENED = [
    ("byte", pa.int8(), "long", [1, None], [1, None]),
    ("integer", pa.int32(), "double", [3, None], [3.0, None]),
    ("integer", pa.int32(), "decimal(12,2)", [7, None], ["7.00", None]),
    ("float", pa.float32(), "double", [0.5, None], [0.5, None]),
    ("decimal", pa.decimal128(5, 1), "decimal(12,4)", ["1.5", None], ["1.5000", None]),
    ("date", pa.date32(), "timestamp_ntz", [19_000, None], ["2022-01-08 00:00:00", None]),
]


@pytest.mark.again
@pytest.mark.parametrize("case", WIDENED, ids=lambda case: f"{case[0]}-{case[2]}")
def test_files_from_before_a_type_was_widened_are_read_in_the_wider_type(spark, tmp_path, case):
    _, stored, wider, values, wanted = case
    nested = struct_of(field("v", wider))
    table = GrownTable(
        tmp_path / "wide",
        [field("v", wider), field("s", nested)],
        features=["typeWidening", "timestampNtz"],
        enableTypeWidening="true",
    )
    texts = pa.array(values).cast(stored) if stored != pa.date32() else pa.array(values, stored)
    nested_values = pa.StructArray.from_arrays([texts], ["v"])
    table.add("old", pa.table({"v": texts, "s": nested_values}))
    frame = read(spark, table.path)
    shown = frame.select(sf.col("v").cast("string"), sf.col("s.v").cast("string").alias("n"))
    assert sorted(map(tuple, shown.collect()), key=str) == sorted(
        [(None if w is None else str(w),) * 2 for w in wanted], key=str
    )
    assert frame.where("v IS NOT NULL AND s.v = v").count() == 1


def test_variants_are_read(spark, tmp_path):
    table = GrownTable(tmp_path / "variant", [ID, field("v", "variant")], features=["variantType"])
    source = spark.sql("SELECT 1L AS id, parse_json('{\"k\": [1, 2]}') AS v")
    source.coalesce(1).write.parquet(str(tmp_path / "source"))
    (file,) = (tmp_path / "source").glob("*.parquet")
    table.add("v", pa.table({"id": [0]}))
    target = table.root / "v.parquet"
    target.write_bytes(file.read_bytes())
    found = read(spark, table.path).select(sf.expr("variant_get(v, '$.k[1]', 'int')")).first()
    assert found[0] == 2


def test_declared_lengths_are_strings_to_readers(spark, tmp_path):
    declared = field("c", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(3)")
    table = GrownTable(tmp_path / "chars", [declared])
    table.add("c", pa.table({"c": ["ab", "abc"]}))
    frame = read(spark, table.path)
    assert frame.schema["c"].dataType.simpleString() == "string"
    assert frame.where("c = 'ab'").count() == 1


def test_columns_that_spark_pads_are_read_from_files_with_vectors(spark, tmp_path):
    declared = field("c", "string", __CHAR_VARCHAR_TYPE_STRING="char(4)")
    table = GrownTable(tmp_path / "padded", [ID, declared])
    table.add("a", pa.table({"id": [0, 1, 2], "c": ["ab", "abc", "ab"]}), deleted={0})
    frame = read(spark, table.path)
    assert frame.columns == ["id", "c"]
    found = frame.where("c = 'ab'").select("id", "c", "_metadata.row_index").collect()
    assert [tuple(row) for row in found] == [(2, "ab  ", 2)]
