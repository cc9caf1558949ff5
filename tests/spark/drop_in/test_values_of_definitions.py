"""Tables are made of values: what looks like a variable or a comment in them is neither."""

from __future__ import annotations

import json

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import types as st

from optimist.core.errors import UsageError
from optimist.spark import DeltaTable

ODD = "${env:HOME} -- it's /* not */ \\ a comment"


@pytest.fixture
def built(enabled, database):
    """A table made by a builder, of odd values."""
    columns = st.StructType(
        [
            st.StructField("a", st.IntegerType(), metadata={"unit": "m", "comment": ODD}),
            st.StructField("s", st.StructType().add("f", st.LongType(), True, {"comment": ODD})),
        ]
    )
    builder = DeltaTable.create(enabled).tableName(f"{database}.built").addColumns(columns)
    return (
        builder.addColumn("b", "INT", generatedAlwaysAs="a + 1 -- plus")
        .addColumn("c", "STRING", generatedAlwaysAs="concat(a, '${not.set}')", comment=ODD)
        .comment(ODD)
        .property("own", ODD)
        .property("zeros", "0030")
        .execute()
    )


def described(enabled, table):
    """The columns, comment and properties of a table."""
    metadata = DeltaTable.forName(enabled, table)._log.snapshot().metadata
    return json.loads(metadata.schema_string), metadata.description, dict(metadata.configuration)


def test_a_builder_hands_values_and_not_text(enabled, built, database, conf):
    conf("not.set", "set by now")
    schema, comment, properties = described(enabled, f"{database}.built")
    assert comment == properties["own"] == ODD
    assert properties["zeros"] == "0030"
    fields = st.StructType.fromJson(schema).fields
    assert fields[0].metadata == {"unit": "m", "comment": ODD}
    assert fields[1].dataType["f"].metadata == {"comment": ODD}
    assert fields[2].metadata == {"delta.generationExpression": "a + 1"}
    assert fields[3].metadata["delta.generationExpression"] == "concat(a, '${not.set}')"


def test_a_table_like_another_has_its_values(enabled, built, database):
    enabled.sql("CREATE TABLE shop.alike LIKE shop.built TBLPROPERTIES (numbers = 0030, t = 1.50)")
    schema, comment, properties = described(enabled, "shop.alike")
    known = described(enabled, "shop.built")
    assert (schema, comment) == known[:2]
    assert properties == {**known[2], "numbers": "0030", "t": "1.50"}


def test_the_shown_statement_makes_the_same_table(enabled, built, database, conf):
    text = enabled.sql("SHOW CREATE TABLE shop.built").first()[0]
    conf("not.set", "set by now")
    enabled.sql(text.replace("built", "again"))
    (schema, *others), (known, *expected) = (
        described(enabled, f"shop.{name}") for name in ("again", "built")
    )
    assert others == expected
    del known["fields"][0]["metadata"]["unit"]  # which no statement says
    generated = schema["fields"][3]["metadata"]
    key = "delta.generationExpression"
    assert generated[key] == r"concat(a, '$\{not.set}')"  # the same text, and no variable
    generated[key] = known["fields"][3]["metadata"][key]
    assert schema == known


def test_a_clone_has_its_properties_as_they_were_given(enabled, built, database):
    clone = built.clone("shop.cloned", isShallow=True, properties={"own": f"{ODD}!"})
    assert clone.detail().first().properties["own"] == f"{ODD}!"


def test_names_are_taken_as_spark_takes_them(enabled, built, database, tmp_path):
    def column(builder, name):
        return builder.tableName(name).addColumn("n", "INT")

    with pytest.raises(AnalysisException) as caught:
        column(DeltaTable.create(enabled), "shop.built").execute()
    assert caught.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
    with pytest.raises(AnalysisException) as caught:
        column(DeltaTable.replace(enabled), "shop.missing").execute()
    assert caught.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    elsewhere = column(DeltaTable.create(enabled), "nowhere.t").location(str(tmp_path / "t"))
    with pytest.raises(AnalysisException) as caught:
        elsewhere.execute()
    assert caught.value.getCondition() == "SCHEMA_NOT_FOUND"
    with pytest.raises(AnalysisException):
        enabled.sql(f"CREATE TABLE nowhere.t (n INT) USING delta LOCATION '{tmp_path}/t'")
    assert not (tmp_path / "t").exists()
    with pytest.raises(UsageError):
        column(DeltaTable.create(enabled), "other.shop.t.u").execute()
    kept = column(DeltaTable.createIfNotExists(enabled), "shop.built").execute()
    assert kept.toDF().columns == ["a", "s", "b", "c"]
    enabled.sql("USE shop")
    made = column(DeltaTable.createOrReplace(enabled), "fresh").execute()
    assert made.detail().first().name == "spark_catalog.shop.fresh"
    assert column(DeltaTable.createOrReplace(enabled), "built").execute().toDF().columns == ["n"]
