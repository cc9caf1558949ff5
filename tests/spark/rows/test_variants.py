"""Variants: whole ones, shredded ones, and what is written to their tables."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hand_made_tables import data_file, field, make_table
from optimist.core.errors import TableError
from optimist.spark import read, write
from table_contents import read_locally


def variant_table(root):
    kind = pa.struct(
        [pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]
    )
    one = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}
    stored = pa.table({"id": [0, 1], "v": pa.array([one, None], kind)})
    add = data_file(root, "f.parquet", stored)
    return make_table(
        root, [field("id", "long"), field("v", "variant")], [add], features=["variantType"]
    )


def test_variants_are_read_as_their_two_binaries_without_spark(tmp_path):
    found = read_locally(variant_table(tmp_path / "t"))
    one = {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}
    assert found["v"].to_pylist() == [one, None]


def test_shredded_variants_are_refused(tmp_path):
    root = variant_table(tmp_path / "t")
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", "int64")])
    pq.write_table(pa.table({"id": [0], "v": pa.array([None], kind)}), root / "f.parquet")
    with pytest.raises(TableError, match="shredded") as caught:
        read_locally(root)
    assert caught.value.kind == "OPTIMIST_DATA_FILE_TYPE_MISMATCH"


@pytest.mark.again
@pytest.mark.parametrize("feature", ["variantShredding", "variantShredding-preview"])
def test_shredded_variants_are_put_together_on_the_native_plane(spark, tmp_path, conf, feature):
    conf("spark.sql.variant.writeShredding.enabled", "true")
    conf("spark.sql.variant.allowReadingShredded", "true")  # PySpark 4.0 has it off
    conf("spark.sql.variant.forceShreddingSchemaForTest", "k int")
    texts = ['{"k": 1, "l": "x"}', '{"k": "one"}', "7"]
    source = spark.createDataFrame([(i, text) for i, text in enumerate(texts)], "id long, t string")
    source = source.selectExpr("id", "parse_json(t) AS v").coalesce(1)
    source.write.parquet(str(tmp_path / "source"))
    (file,) = (tmp_path / "source").glob("*.parquet")
    if "typed_value" not in str(pq.read_schema(file)):
        pytest.skip("this Spark writes no shredded variants")
    root = tmp_path / "t"
    add = data_file(root, "f.parquet", pq.read_table(file))
    (root / "f.parquet").write_bytes(file.read_bytes())
    fields = [field("id", "long"), field("v", "variant")]
    make_table(
        root,
        fields,
        [add],
        features=["variantType", feature],
        configuration={"delta.enableVariantShredding": "true"},
    )
    frame = read(spark, str(root))
    found = frame.selectExpr("id", "to_json(v)", "try_variant_get(v, '$.k', 'int')").orderBy("id")
    assert [tuple(row) for row in found.collect()] == [
        (0, '{"k":1,"l":"x"}', 1),
        (1, '{"k":"one"}', None),
        (2, "7", None),
    ]
    assert frame.where("variant_get(v, '$.k', 'string') = 'one'").count() == 1
    with pytest.raises(TableError, match="native plane"):
        read_locally(root)


def test_variants_are_variants_in_spark(spark, plane, tmp_path):
    frame = read(spark, str(variant_table(tmp_path / "t")))
    found = frame.selectExpr("id", "to_json(v)", "variant_get(v, '$', 'int')").orderBy("id")
    assert [tuple(row) for row in found.collect()] == [(0, "1", 1), (1, None, None)]
    write(frame, str(tmp_path / "t"), mode="append")
    doubled = read_locally(tmp_path / "t")["v"].to_pylist()
    one = {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}
    assert sorted(doubled, key=repr) == [None, None, one, one]
