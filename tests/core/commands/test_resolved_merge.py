"""What follows from the clauses of a MERGE, on either plane."""

from __future__ import annotations

import pytest

from optimist.core.commands.merge.resolved import ResolvedClause, ResolvedMerge
from optimist.core.commands.row_balance import RowBalance
from optimist.core.commands.row_counts import RowCounts

KINDS = {"m": "MATCHED", "n": "NOT MATCHED", "s": "NOT MATCHED BY SOURCE"}
ACTIONS = {"u": "update", "d": "delete", "i": "insert"}


def merge_of(*clauses):
    """Make a MERGE of clauses such as `mu`, or `mu?` with a condition."""
    made = [
        ResolvedClause(
            number, KINDS[text[0]], ACTIONS[text[1]], text[2:] or None, text[2:] or None, None
        )
        for number, text in enumerate(clauses)
    ]
    return ResolvedMerge("t.id = s.id", tuple(made))


def test_rows_are_counted_by_the_clauses_that_they_get():
    merge = merge_of("mu?", "sd?", "md", "ni?", "su", "sd?", "mu?")
    counts = merge.counts({0: 1, 1: 10, 2: 100, 4: 1000, 5: 20, 6: 2})
    assert counts == RowCounts(updated=3, deleted=100, updated_by_source=1000, deleted_by_source=30)
    assert merge.counts({}) == RowCounts()
    assert merge.numbers_of("delete") == [1, 2, 5]
    assert merge.numbers_of("delete", "NOT MATCHED BY SOURCE") == [1, 5]


@pytest.mark.parametrize(
    ("clauses", "balance", "takes_several"),
    [
        (["ni"], RowBalance.ANY, False),
        (["md", "ni"], RowBalance.ANY, True),
        (["md"], RowBalance.NO_MORE, True),
        (["md?"], RowBalance.NO_MORE, False),
        (["md?", "md"], RowBalance.NO_MORE, False),
        (["sd"], RowBalance.NO_MORE, False),
        (["mu"], RowBalance.EQUAL, False),
        (["mu", "su"], RowBalance.EQUAL, False),
    ],
)
def test_clauses_say_how_many_rows_and_matches_there_may_be(clauses, balance, takes_several):
    merge = merge_of(*clauses)
    assert (merge.balance, merge.takes_several_matches) == (balance, takes_several)
    assert merge.only_inserts is (clauses == ["ni"])
    assert merge.searches_all_rows is any(text.startswith("s") for text in clauses)


def test_the_history_has_the_clauses_by_kind_and_in_order():
    operation = merge_of("mu?", "ni", "md").operation()
    assert operation.name == "MERGE"
    parameters = str(operation.parameters)
    assert parameters.index("update") < parameters.index("delete") < parameters.index("insert")
