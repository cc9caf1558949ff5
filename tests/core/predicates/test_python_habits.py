"""What Python's operators make of `col`: the rows that they choose, or an error."""

from __future__ import annotations

import datetime as dt
import enum
from decimal import Decimal
from itertools import islice

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from optimist.core import DeltaLog, Predicate, col
from optimist.core.errors import ArgumentTypeError, UsageError
from python_habits import chosen_by_builder, chosen_by_python, expressions


@pytest.mark.filterwarnings("ignore:The truth value of an empty array:DeprecationWarning")
def test_no_expression_chooses_other_rows_than_python_would():
    for text in islice(expressions(), 0, None, 23):
        chosen = chosen_by_builder(text)
        python = chosen_by_python(text)
        assert chosen is None or python is None or chosen == python, text


@pytest.mark.parametrize(
    "build",
    [
        lambda: (col("id") == 1) and (col("name") == "b"),
        lambda: (col("id") == 1) or (col("name") == "b"),
        lambda: not (col("id") == 1),  # noqa: SIM201
        lambda: 2 < col("id") < 5,
        lambda: col("id") in [2, 3],
        lambda: "a" in col("name"),
        lambda: col("id") and col("name"),
        lambda: any([col("id") == 1, col("id") == 2]),
        lambda: (col("id") == 1) in [col("id") == 2, 5] or (col("id") == 1) in (col("id") == 1),
    ],
)
def test_python_may_not_ask_whether_a_predicate_is_true(build):
    with pytest.raises(UsageError, match=r"&, \| and ~") as caught:
        build()
    assert caught.value.kind == "OPTIMIST_PREDICATE_AS_BOOL"


@pytest.mark.parametrize(
    "build",
    [
        lambda: (col("id") == 1) & True,
        lambda: True & (col("id") == 1),
        lambda: (col("id") == 1) | "name = 'b'",
        lambda: "name = 'b'" | (col("id") == 1),
        lambda: (col("id") == 1) & col("flag"),
        lambda: col("flag") & (col("id") == 1),
        lambda: ~col("flag"),
        lambda: col("id") == 1 & (col("name") == "b"),
        lambda: col("id") == 1 & col("id"),
        lambda: col("name").isin("ab"),
        lambda: col("name").isin(b"ab"),
        lambda: col("name").isin(5),
        lambda: col("name").isin({"a": 1}),
        lambda: col("name").isin(pd.DataFrame({"a": [1]})),
        lambda: col("name").isin(col("name")),
        lambda: col("name").startswith(("a", "b")),
        lambda: col("name").startswith(None),
        lambda: col("name").like(None),
        lambda: col(5),
        lambda: col(["id"]),
    ],
)
def test_builders_refuse_what_is_of_another_type(build):
    with pytest.raises(ArgumentTypeError) as caught:
        build()
    assert caught.value.kind == "OPTIMIST_INVALID_ARGUMENT_TYPE"


@pytest.mark.parametrize(
    "build",
    [
        lambda: col("id") == None,  # noqa: E711  # what is tested
        lambda: None != col("id"),  # noqa: E711, SIM300
        lambda: col("id") < None,
        lambda: col("id").between(None, 5),
        lambda: col("id").isin([1, None]),
        lambda: col("t") == pd.NaT,
        lambda: col("t") == pd.Timestamp("2020-01-01T00:00:00.000000001"),
        lambda: col("t") == np.datetime64("2020-01-01"),
        lambda: np.float32(0.1) == col("f"),
        lambda: col("f") == np.float32(0.1),
        lambda: col("flag") == np.bool_(True),
        lambda: col("id") == (col("id") == 1),
        lambda: col("id") == Decimal("NaN"),
        lambda: col("id") == Decimal("1E-39"),
        lambda: col("id") == Decimal("1E+1000000000"),
        lambda: col("id") == 10**38,
    ],
)
def test_values_that_mean_no_constant_are_refused(build):
    with pytest.raises(UsageError) as caught:
        build()
    assert caught.value.kind == "OPTIMIST_INVALID_LITERAL"


class _Colour(str, enum.Enum):
    RED = "red"


class _Size(enum.IntEnum):
    S = 1


@pytest.mark.parametrize(
    ("built", "sql"),
    [
        (lambda: col("a") == np.int64(1), "a = 1"),
        (lambda: np.int8(1) == col("a"), "a = 1"),
        (lambda: col("a") == np.float64(1), "a = 1.0D"),
        (lambda: col("a") == _Size.S, "a = 1"),
        (lambda: col("a") == Decimal("1E+37"), f"a = 1{'0' * 37}BD"),
        (lambda: col("a") == 2**64, f"a = {2**64}BD"),
        (lambda: col("a") == _Colour.RED, "a = 'red'"),
        (lambda: col("a") == np.str_("x"), "a = 'x'"),
        (lambda: col("a").isin(np.array([1, 2])), "a IN (1, 2)"),
        (lambda: col("a").isin(range(2)), "a IN (0, 1)"),
        (lambda: col("a").eq_null_safe(None), "a <=> NULL"),
        (
            lambda: col("a") == pd.Timestamp("2020-01-01 01:00", tz="Europe/Berlin"),
            "a = TIMESTAMP '2020-01-01 00:00:00Z'",
        ),
        (lambda: col("a") == dt.datetime(2020, 1, 1), "a = TIMESTAMP '2020-01-01 00:00:00'"),
    ],
)
def test_values_of_subclasses_are_what_they_hold(built, sql):
    assert str(built()) == sql


@pytest.mark.parametrize("given", [True, False, 0, [], ["id = 1"], {"id": 1}, ..., col("id")])
def test_tables_take_a_predicate_or_text_and_nothing_else(given, tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    log.append(pa.table({"id": [1, 2]}))
    merge = log.merge(pa.table({"id": [1]}), ["id"])
    for call in (
        lambda: log.delete(given),
        lambda: log.update(set={"id": 5}, predicate=given),
        lambda: log.to_arrow(given),
        lambda: log.files(given),
        lambda: log.count(given),
        lambda: log.start_transaction().filter_files(given),
        lambda: log.optimize(given),
        lambda: merge.when_matched_delete(given).execute(),
        lambda: log.merge(pa.table({"id": [1]}), [given]),
    ):
        with pytest.raises(ArgumentTypeError):
            outcome = call()
            outcome.when_matched_delete().execute()
    assert log.snapshot().version == 0


def test_a_chain_of_python_deletes_nothing(tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    log.append(pa.table({"id": [1, 2, 3], "name": ["a", "b", "b"]}))
    with pytest.raises(UsageError):
        log.delete((col("id") == 1) and (col("name") == "b"))
    with pytest.raises(UsageError):
        log.delete(2 < col("id") < 5)
    assert log.to_arrow().num_rows == 3
    assert log.delete((col("id") == 1) & (col("name") == "b")).num_deleted == 0


def test_predicates_are_still_values():
    one, other = col("a") == 1, col("a") == 1
    assert one == other
    assert {one: 5}[other] == 5
    assert Predicate.of("a = 1") == one
    assert Predicate.of(one) is one
