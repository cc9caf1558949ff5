"""An alias goes off the names that stand behind it, and off nothing else."""

from __future__ import annotations

import pytest

from optimist.core.statements.aliases import column_without, text_without


@pytest.mark.parametrize(
    ("sql", "plain"),
    [
        ("t.a > 1", "a > 1"),
        ("T . a=1 AND `t`.`b c` < t.s.f", "a=1 AND `b c` < s.f"),
        ("s.t.a = 't.a' OR t = 1 -- t.a", "s.t.a = 't.a' OR t = 1 -- t.a"),
        ("f(t.a, tt.b, 1.5)", "f(a, tt.b, 1.5)"),
        ("t.t.a", "t.a"),
        ("", ""),
    ],
)
def test_text(sql, plain):
    assert text_without("t", sql) == plain


def test_columns():
    assert column_without("T", ("t", "a")) == ("a",)
    assert column_without("t", ("t",)) == ("t",)
    assert column_without("t", ("a", "t")) == ("a", "t")
