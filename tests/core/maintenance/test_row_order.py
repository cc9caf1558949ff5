"""Curves and layouts: where rows go that an OPTIMIZE arranges."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.maintenance.optimize.row_order import FileLayout, RowOrder
from optimist.core.maintenance.optimize.space_curve import hilbert_places, hilbert_table, z_digits


def z_places(ranks: np.ndarray) -> np.ndarray:
    count = ranks.shape[1]
    return sum(np.array(z_digits(at, count))[ranks[:, at]] for at in range(count))


@pytest.mark.parametrize(("columns", "step"), [(1, 1), (2, 1), (3, 16), (4, 64)])
def test_hilbert_s_curve_goes_from_each_cell_to_a_neighbour(columns, step):
    ranks = np.array(list(itertools.product(range(0, 256, step), repeat=columns)))
    places = hilbert_places(z_places(ranks), columns)
    assert len(set(places.tolist())) == len(ranks)
    walked = ranks[np.argsort(places)]
    assert set(np.abs(np.diff(walked, axis=0)).sum(axis=1).tolist()) == {step}


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 6])
def test_z_order_weaves_the_bits_of_the_ranks(columns):
    ranks = np.random.default_rng(columns).integers(0, 256, (200, columns))
    woven = [
        int("".join(str(rank >> bit & 1) for bit in reversed(range(8)) for rank in row), 2)
        for row in ranks.tolist()
    ]
    assert z_places(ranks).tolist() == woven


@pytest.mark.parametrize("columns", [7, 20, 54, 80])
def test_ranks_of_many_columns_give_their_highest_bits(columns):
    highest = np.zeros((1, columns), np.int64)
    highest[0, 0] = 255
    others = np.full((1, columns), 255, np.int64)
    others[0, 0] = 127
    assert 0 <= z_places(others)[0] < z_places(highest)[0] < 1 << 54


def test_tables_of_states_are_small():
    assert [len(hilbert_table(count).steps) for count in (1, 2, 3, 4)] == [2, 16, 96, 512]


def numbers(layout: FileLayout, *columns: pa.Array) -> list[int]:
    ties = np.arange(len(columns[0])) % 256
    return layout.file_numbers(columns, ties).tolist()


@pytest.mark.parametrize("is_hilbert", [False, True])
def test_files_have_narrow_ranges_of_each_column(is_hilbert):
    rng = np.random.default_rng(7)
    first = pa.array(rng.integers(-(10**9), 10**9, 50_000))
    second = pa.array([f"{value:08x}" for value in rng.integers(0, 1 << 31, 50_000)])
    order = RowOrder((("a",), ("b",)), is_hilbert)
    layout = FileLayout.of(order, [first, second], 16)
    found = np.array(numbers(layout, first, second))
    assert np.bincount(found).tolist() == pytest.approx([50_000 / 16] * 16, rel=0.1)
    for column in (first, second):
        of_files = [
            np.sort(column.filter(pa.array(found == file)).to_pylist()) for file in range(16)
        ]
        asked = np.sort(column.to_pylist())[::5_000]
        hit = [sum(each[0] <= value <= each[-1] for each in of_files) for value in asked]
        assert np.mean(hit) < 6.5  # of 16; sorted by one column, the other one hits all


VALUES = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=3),
    pa.binary(): st.binary(max_size=3),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(dt.timezone.utc)),
    pa.decimal128(38, 3): st.integers(-(10**37), 10**37).map(
        lambda number: Decimal(number).scaleb(-3)
    ),
}


@given(st.data(), st.sampled_from(sorted(VALUES, key=str)), st.integers(1, 9))
def test_rows_of_one_column_are_sorted_into_files(data, arrow_type, num_files):
    values = data.draw(st.lists(st.none() | VALUES[arrow_type], max_size=60))
    column = pa.array(values, arrow_type)
    layout = FileLayout.of(RowOrder((("a",),)), [column], num_files)
    found = numbers(layout, column)
    assert all(0 <= number < num_files for number in found)
    ties = np.zeros(len(column), np.int64)
    alone = [layout.file_numbers([column.slice(at, 1)], ties[:1])[0] for at in range(len(column))]
    assert layout.file_numbers([column], ties).tolist() == alone
    ordered = column.take(pc.sort_indices(column))
    size = len(column) - column.null_count
    places = layout.file_numbers([ordered.slice(0, size)], ties[:size]).tolist()
    assert places == sorted(places)


def test_equal_rows_are_spread_over_all_files():
    column = pa.array([5] * 4_096)
    layout = FileLayout.of(RowOrder((("a",),)), [column], 4)
    assert min(np.bincount(numbers(layout, column), minlength=4)) > 900


@pytest.mark.parametrize("values", [[], [None] * 10])
def test_nothing_to_order_by_is_no_error(values):
    column = pa.array(values, pa.int64())
    layout = FileLayout.of(RowOrder((("a",),)), [column], 3)
    assert all(number < 3 for number in numbers(layout, column))
