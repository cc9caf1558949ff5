from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.errors import SchemaError
from optimist.core.protocol.schema_merge import (
    SchemaAction,
    SchemaDecision,
    SchemaWrite,
    decide_schema,
    merge_schemas,
    without_internal_metadata,
)
from optimist.core.schema.types import (
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

BYTE, SHORT, INT, LONG = map(PrimitiveType, ("byte", "short", "integer", "long"))
STRING, DATE, VOID = map(PrimitiveType, ("string", "date", "void"))


def field(name: str, data_type=LONG, nullable: bool = True, **metadata) -> StructField:
    return StructField(name, data_type, nullable, metadata)


def struct(*items) -> StructType:
    return StructType(tuple(field(item) if isinstance(item, str) else item for item in items))


def refusal(table, write: SchemaWrite, by=(), **rest) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        decide_schema(table, by, write, **rest)
    assert "Nothing was written." in str(caught.value)
    return caught.value


# Merging


def test_tables_spelling_nullability_metadata_and_order_win() -> None:
    table = struct(field("Id", LONG, False, comment="key"), "x")
    data = struct("X", field("id", LONG, True, comment="other"))
    assert merge_schemas(table, data) == table


def test_columns_that_the_data_lacks_are_kept() -> None:
    table = struct("a", "b")
    assert merge_schemas(table, struct("b")) == table


def test_new_columns_go_to_the_end_of_their_struct_and_are_nullable() -> None:
    table = struct(field("s", struct("a")), "z")
    data = struct(field("new", LONG, False), "z", field("S", struct(field("b", INT, False), "a")))
    assert merge_schemas(table, data) == struct(
        field("s", struct("a", field("b", INT))), "z", field("new", LONG)
    )


def test_arrays_and_maps_are_merged_inside() -> None:
    table = struct(
        field("l", ArrayType(struct("a"), False)), field("m", MapType(STRING, struct("a"), False))
    )
    data = struct(field("l", ArrayType(struct("b"))), field("m", MapType(STRING, struct("a", "b"))))
    assert merge_schemas(table, data) == struct(
        field("l", ArrayType(struct("a", "b"), False)),
        field("m", MapType(STRING, struct("a", "b"), False)),
    )


@pytest.mark.parametrize(
    ("table", "data", "expected"),
    [
        (BYTE, SHORT, SHORT),
        (SHORT, BYTE, SHORT),
        (INT, BYTE, INT),
        (SHORT, INT, INT),
        (VOID, DATE, DATE),
        (DATE, VOID, DATE),
        (ArrayType(LONG), VOID, ArrayType(LONG)),
        (VOID, struct("a"), struct("a")),
    ],
)
def test_small_integers_and_void_become_the_wider_type(table, data, expected) -> None:
    merged = merge_schemas(struct(field("x", table)), struct(field("x", data)))
    assert merged == struct(field("x", expected))


@pytest.mark.parametrize(
    ("table", "data", "cause"),
    [
        (INT, LONG, "DELTA_MERGE_INCOMPATIBLE_DATATYPE"),
        (LONG, INT, "DELTA_MERGE_INCOMPATIBLE_DATATYPE"),
        (LONG, STRING, "DELTA_MERGE_INCOMPATIBLE_DATATYPE"),
        (DATE, PrimitiveType("timestamp"), "DELTA_MERGE_INCOMPATIBLE_DATATYPE"),
        (struct("a"), LONG, "DELTA_MERGE_INCOMPATIBLE_DATATYPE"),
        (ArrayType(LONG), MapType(LONG, LONG), "DELTA_MERGE_INCOMPATIBLE_DATATYPE"),
        (DecimalType(5, 2), DecimalType(6, 2), "DELTA_MERGE_INCOMPATIBLE_DECIMAL_TYPE"),
        (DecimalType(5, 2), DecimalType(5, 1), "DELTA_MERGE_INCOMPATIBLE_DECIMAL_TYPE"),
        (DecimalType(5, 2), LONG, "DELTA_MERGE_INCOMPATIBLE_DATATYPE"),
    ],
)
def test_types_that_do_not_go_together_are_named(table, data, cause) -> None:
    with pytest.raises(SchemaError) as caught:
        merge_schemas(struct("k", field("x", table)), struct(field("X", data)))
    error = caught.value
    assert error.kind == "DELTA_FAILED_TO_MERGE_FIELDS"
    assert error.fields["cause"] == cause
    assert error.fields["column"] == "x"
    assert error.fields["table_type"] == str(table)
    assert error.fields["data_type"] == str(data)
    assert f"column x is {table} in the table and {data} in the data" in str(error)


def test_every_conflict_is_named_with_its_path() -> None:
    table = struct(field("a", LONG), field("s", struct(field("l", ArrayType(LONG)))))
    data = struct(field("a", DATE), field("s", struct(field("l", ArrayType(DATE)))))
    with pytest.raises(SchemaError) as caught:
        merge_schemas(table, data)
    assert caught.value.fields["columns"] == ("a", "s.l.element")


def test_allowed_widening_takes_the_data_type() -> None:
    merged = merge_schemas(
        struct(field("x", INT)), struct("x"), may_widen=lambda old, new: (old, new) == (INT, LONG)
    )
    assert merged == struct("x")


def test_duplicates_in_the_data_are_refused() -> None:
    with pytest.raises(SchemaError) as caught:
        merge_schemas(struct("a"), struct("a", "A"))
    assert caught.value.kind == "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"
    assert caught.value.fields["columns"] == ("A",)


_types = st.recursive(
    st.sampled_from([BYTE, SHORT, INT, LONG, STRING, VOID, DecimalType(9, 2)]),
    lambda inner: st.builds(ArrayType, inner) | st.builds(MapType, st.just(STRING), inner),
    max_leaves=3,
)
_schemas = st.lists(
    st.builds(StructField, st.sampled_from("abcdef"), _types, st.booleans()),
    max_size=5,
    unique_by=lambda item: item.name,
).map(lambda items: StructType(tuple(items)))


@given(_schemas)
def test_merging_a_schema_with_itself_or_nothing_changes_nothing(schema) -> None:
    assert merge_schemas(schema, schema) == schema
    assert merge_schemas(schema, StructType()) == schema


@given(_schemas, _schemas)
def test_merged_schema_accepts_the_data_and_the_table(table, data) -> None:
    try:
        merged = merge_schemas(table, data)
    except SchemaError as error:
        assert error.kind == "DELTA_FAILED_TO_MERGE_FIELDS"
        return
    assert merge_schemas(merged, data) == merged
    assert merge_schemas(merged, table) == merged
    assert merged.names[: len(table)] == table.names


def test_internal_metadata_of_another_table_is_left_behind_and_comments_are_kept() -> None:
    internal = {"delta.columnMapping.id": 3, "CURRENT_DEFAULT": "1", "comment": "c"}
    inner = StructField("y", LONG, True, internal)
    schema = struct(field("s", ArrayType(StructType((inner,)))))
    kept = struct(field("s", ArrayType(struct(field("y", LONG, comment="c")))))
    assert without_internal_metadata(schema) == kept


# Deciding


def test_missing_table_is_created_nullable_and_in_the_datas_spelling() -> None:
    data = struct(field("Day", DATE, False), "x")
    decision = decide_schema(None, (), SchemaWrite(data, ["day"]))
    expected = struct(field("Day", DATE), "x")
    assert decision == SchemaDecision(SchemaAction.CREATE, expected, ("Day",))


def test_table_can_not_be_made_of_no_columns() -> None:
    assert refusal(None, SchemaWrite(StructType())).kind == "DELTA_EMPTY_DATA"


@pytest.mark.parametrize("table", [None, struct("x")])
def test_partition_column_must_be_among_the_columns(table) -> None:
    error = refusal(table, SchemaWrite(struct("x"), ["day"]))
    assert error.kind == "DELTA_PARTITION_COLUMN_NOT_FOUND"
    assert error.fields["column"] == "day"
    assert error.fields["candidates"] == ("x",)


@pytest.mark.parametrize("by", [None, (), ["P"]])
def test_data_that_fits_leaves_the_metadata_alone(by) -> None:
    table = struct("p", field("x", INT, comment="c"))
    data = struct(field("X", SHORT), "p")
    decision = decide_schema(table, ("p",), SchemaWrite(data, by))
    assert decision == SchemaDecision(SchemaAction.KEEP, table, ("p",))


def test_new_column_without_the_option_is_refused_and_the_option_is_named() -> None:
    error = refusal(struct("x"), SchemaWrite(struct("x", field("y", DATE))))
    assert error.kind == "DELTA_METADATA_MISMATCH"
    assert error.fields["columns"] == ("y",)
    assert error.fields["options"] == ("mergeSchema",)
    assert "column y (date) is in the data but not in the table" in str(error)
    assert "mergeSchema" in str(error)


def test_wider_integer_without_the_option_is_refused_with_both_types() -> None:
    error = refusal(struct(field("x", SHORT)), SchemaWrite(struct(field("x", INT))))
    assert error.kind == "DELTA_METADATA_MISMATCH"
    assert error.fields["columns"] == ("x",)
    assert "column x is short in the table and integer in the data" in str(error)


def test_overwrite_that_does_not_fit_is_also_told_of_overwrite_schema() -> None:
    error = refusal(struct("x"), SchemaWrite(struct("x", "y"), is_overwrite=True))
    assert error.fields["options"] == ("mergeSchema", "overwriteSchema")


def test_merge_schema_evolves_the_table() -> None:
    write = SchemaWrite(struct(field("y", DATE), "x"), merge_schema=True)
    decision = decide_schema(struct("p", "x"), ("p",), write)
    expected = struct("p", "x", field("y", DATE))
    assert decision == SchemaDecision(SchemaAction.EVOLVE, expected, ("p",))


def test_merge_schema_with_data_that_fits_changes_nothing() -> None:
    write = SchemaWrite(struct("x"), merge_schema=True)
    assert decide_schema(struct("x"), (), write).action is SchemaAction.KEEP


@pytest.mark.parametrize("merge_schema", [True, False])
@pytest.mark.parametrize("columns", [("x", "p", "q"), ("x", "p", "q", "new")])
def test_other_partitioning_is_refused_and_both_are_named(merge_schema, columns) -> None:
    write = SchemaWrite(struct(*columns), ["q"], merge_schema=merge_schema)
    error = refusal(struct("x", "p", "q"), write, by=("p",))
    assert error.kind == "DELTA_METADATA_MISMATCH"
    assert error.fields["options"] == ("overwriteSchema",)
    assert error.fields["table_partition_columns"] == ("p",)
    assert error.fields["partition_columns"] == ("q",)
    assert "partitioned by [p] and the write asks for [q]" in str(error)


def test_partition_columns_in_another_order_are_another_partitioning() -> None:
    write = SchemaWrite(struct("x", "p", "q"), ["q", "p"])
    assert refusal(struct("x", "p", "q"), write, by=("p", "q")).kind == "DELTA_METADATA_MISMATCH"


def test_overwrite_schema_replaces_schema_and_partitioning() -> None:
    write = SchemaWrite(
        struct(field("x", DATE, False), "q"), ["q"], is_overwrite=True, overwrite_schema=True
    )
    decision = decide_schema(struct("x", "p"), ("p",), write)
    expected = struct(field("x", DATE), "q")
    assert decision == SchemaDecision(SchemaAction.OVERWRITE, expected, ("q",))


def test_overwrite_schema_with_nothing_new_changes_nothing() -> None:
    write = SchemaWrite(struct("x", "p"), ["p"], is_overwrite=True, overwrite_schema=True)
    assert decide_schema(struct("x", "p"), ("p",), write).action is SchemaAction.KEEP


def test_overwrite_schema_without_partitioning_makes_the_table_unpartitioned() -> None:
    write = SchemaWrite(struct("x", "p"), is_overwrite=True, overwrite_schema=True)
    decision = decide_schema(struct("x", "p"), ("p",), write)
    assert decision == SchemaDecision(SchemaAction.OVERWRITE, struct("x", "p"), ())


def test_overwrite_schema_without_overwrite_has_no_effect() -> None:
    error = refusal(struct("x"), SchemaWrite(struct("x", "y"), overwrite_schema=True))
    assert error.kind == "DELTA_METADATA_MISMATCH"


@pytest.mark.parametrize(
    ("table", "write"),
    [
        (None, SchemaWrite(struct("x"), data_change=False)),
        (struct("x"), SchemaWrite(struct("x", "y"), merge_schema=True, data_change=False)),
        (
            struct("x"),
            SchemaWrite(struct("y"), is_overwrite=True, overwrite_schema=True, data_change=False),
        ),
    ],
)
def test_write_that_only_rearranges_rows_can_not_change_the_metadata(table, write) -> None:
    assert refusal(table, write).kind == "DELTA_DATA_CHANGE_FALSE"


def test_write_that_only_rearranges_rows_may_leave_the_metadata_alone() -> None:
    write = SchemaWrite(struct("x"), data_change=False)
    assert decide_schema(struct("x"), (), write).action is SchemaAction.KEEP


def test_duplicates_are_refused_before_anything_else_is_looked_at() -> None:
    assert refusal(None, SchemaWrite(struct("x", "X"))).kind == "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"


@pytest.mark.parametrize(
    ("table", "data", "column"),
    [
        (struct("x", field("k", LONG, False)), struct("x"), "k"),
        (
            struct(field("s", struct("x", field("k", LONG, False)))),
            struct(field("s", struct("x"))),
            "s.k",
        ),
    ],
)
def test_required_column_that_the_data_lacks_is_named(table, data, column) -> None:
    error = refusal(table, SchemaWrite(data))
    assert error.kind == "DELTA_NOT_NULL_COLUMN_NOT_FOUND_IN_STRUCT"
    assert error.fields["column"] == column


@pytest.mark.parametrize(
    "metadata",
    [{"delta.generationExpression": "x"}, {"CURRENT_DEFAULT": "1"}, {"delta.identity.start": 1}],
)
def test_required_column_that_the_engine_computes_may_be_missing(metadata) -> None:
    table = StructType((field("x"), StructField("k", LONG, False, metadata)))
    assert decide_schema(table, (), SchemaWrite(struct("x"))).action is SchemaAction.KEEP


@pytest.mark.parametrize("sql", ["x > 0", "X + y < 9", "this is no )( sql"])
def test_type_of_a_column_that_a_constraint_reads_can_not_change(sql: str) -> None:
    table = struct(field("x", SHORT), "y")
    write = SchemaWrite(struct(field("x", INT)), merge_schema=True)
    error = refusal(table, write, constraints={"c": sql})
    assert error.kind == "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"
    assert error.fields["column"] == "x"
    assert error.fields["reader"] == "c"


def test_type_of_a_column_that_a_generated_column_reads_can_not_change() -> None:
    generated = StructField("g", LONG, True, {"delta.generationExpression": "x + 1"})
    write = SchemaWrite(struct(field("x", INT)), merge_schema=True)
    error = refusal(struct(field("x", SHORT), generated), write)
    assert error.kind == "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH"
    assert error.fields["column"] == "x"


def test_type_of_a_generated_column_is_that_of_its_expression() -> None:
    generated = StructField("g", SHORT, True, {"delta.generationExpression": "CAST(x AS smallint)"})
    write = SchemaWrite(struct("x", field("g", INT)), merge_schema=True)
    error = refusal(struct("x", generated), write)
    assert error.kind == "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH"
    assert error.fields["column"] == "g"
    assert error.fields["reader"] == "g"


@pytest.mark.parametrize("constraints", [{}, {"c": "y > 0"}])
def test_type_of_a_column_that_nothing_reads_may_change(constraints) -> None:
    write = SchemaWrite(struct(field("x", INT)), merge_schema=True)
    decision = decide_schema(struct(field("x", SHORT), "y"), (), write, constraints=constraints)
    assert decision.schema == struct(field("x", INT), "y")


def test_added_nested_field_is_no_change_of_type_for_constraints() -> None:
    table = struct(field("s", struct("a")))
    write = SchemaWrite(struct(field("s", struct("a", "b"))), merge_schema=True)
    decision = decide_schema(table, (), write, constraints={"c": "s.a > 0"})
    assert decision.action is SchemaAction.EVOLVE


VOIDS = {
    "struct": (struct(field("a", VOID), field("b", VOID)), "x"),
    "struct in struct": (struct(field("in", struct(field("a", VOID))), "b"), "x.in"),
    "array": (ArrayType(VOID), "x"),
    "array of structs": (ArrayType(struct(field("a", VOID))), "x.element"),
    "array of structs of which a part is void": (
        ArrayType(struct(field("a", VOID), "b")),
        "x.element",
    ),
    "map": (MapType(STRING, VOID), "x"),
}


@pytest.mark.parametrize("name", VOIDS)
def test_new_columns_that_hold_nothing_but_void_are_refused(name) -> None:
    kind, path = VOIDS[name]
    data = struct(field("x", kind), "y")
    writes = [
        (None, SchemaWrite(data)),
        (struct("y"), SchemaWrite(data, merge_schema=True)),
        (struct(field("x", VOID), "y"), SchemaWrite(data, merge_schema=True)),
        (struct("x", "y"), SchemaWrite(data, is_overwrite=True, overwrite_schema=True)),
    ]
    for table, write in writes:
        with pytest.raises(SchemaError) as caught:
            decide_schema(table, (), write)
        assert caught.value.kind == "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"
        assert caught.value.fields["path"] == path


def test_void_beside_values_and_in_columns_that_have_a_type_is_fine() -> None:
    beside = struct(field("x", struct(field("a", VOID), "b")), field("v", VOID))
    assert decide_schema(None, (), SchemaWrite(beside)).schema == beside
    typed = struct(field("x", struct("a", "b")), field("l", ArrayType(LONG)))
    data = struct(field("x", struct(field("a", VOID))), field("l", ArrayType(VOID)))
    assert decide_schema(typed, (), SchemaWrite(data)).action is SchemaAction.KEEP
    # Another engine made it: its rows can be written as they are.
    odd = struct(field("l", ArrayType(VOID)), "y")
    assert decide_schema(odd, (), SchemaWrite(odd)).action is SchemaAction.KEEP
