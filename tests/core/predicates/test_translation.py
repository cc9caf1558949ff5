"""The table of operators, by a form whose terms are tuples, texts and numbers."""

from __future__ import annotations

import pytest

from optimist.core.predicates.translation import Translation
from optimist.core.predicates.tree import Column, Literal, Opaque


class Form(Translation[object]):
    def operation(self, term):
        return (term[0], term[1:]) if isinstance(term, tuple) and term else None

    def column(self, term):
        return Column((term[1:],)) if isinstance(term, str) and term.startswith("$") else None

    def literal(self, term):
        kinds = {bool: "boolean", int: "integer", str: "string", type(None): "null"}
        if type(term) not in kinds or self.column(term) is not None:
            return None
        return Literal(term, kinds[type(term)])

    def opaque(self, term):
        return Opaque("?", frozenset(), deterministic=True)


A_IS_1 = ("=", "$a", 1)
UNKNOWN = ()


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (("=", 1, "$a"), "a = 1"),
        (("<", 1, "$a"), "a > 1"),
        (("<=", "$a", "$b"), "a <= b"),
        (("<=>", None, "$a"), "a <=> NULL"),
        (("<=>", A_IS_1, True), "(a = 1) IS TRUE"),
        (("<=>", False, A_IS_1), "(NOT (a = 1)) IS TRUE"),
        (("<>", A_IS_1, True), "NOT (a = 1)"),
        (("=", True, A_IS_1), "a = 1"),
        (("=", "x", "x"), "TRUE"),
        (("<>", 1, 1), "FALSE"),
        (("=", None, 1), "NULL"),
        (("IN", "$a", 1, None), "a IN (1, NULL)"),
        (("BETWEEN", "$a", 1, "$b"), "a >= 1 AND a <= b"),
        (("IS NOT NULL", "$a"), "NOT (a IS NULL)"),
        (("IS FALSE", "$a"), "(NOT (a = TRUE)) IS TRUE"),
        (("ENDS WITH", "$a", ""), "a LIKE '%'"),
        (("CONTAINS", "$a", "x"), "a LIKE '%x%'"),
        (("LIKE", "$a", "x!%", "!"), r"a LIKE 'x\\%'"),
        (
            ("OR", A_IS_1, ("OR", ("OR", "$b", False), "$c")),
            "a = 1 OR b = TRUE OR FALSE OR c = TRUE",
        ),
        (("AND", A_IS_1, UNKNOWN), "a = 1 AND (?)"),
        (None, "NULL"),
    ],
)
def test_operators_become_predicates(term, expected):
    assert str(Form().predicate(term)) == expected


@pytest.mark.parametrize(
    "term",
    [
        UNKNOWN,
        1,
        "x",
        ("=", "$a", UNKNOWN),
        ("=", UNKNOWN, True),
        ("<", A_IS_1, True),
        ("<", 1, 2),
        ("<=>", UNKNOWN, True),
        ("<=>", A_IS_1, 1),
        ("=", "$a"),
        ("IN", "$a"),
        ("IN", "$a", 1, UNKNOWN),
        ("IN", A_IS_1, 1),
        ("BETWEEN", "$a", 1, UNKNOWN),
        ("IS NULL", 1),
        ("STARTS WITH", "$a", 1),
        ("LIKE", "$a", "x!y", "!"),
        ("LIKE", "$a", "x", ""),
        ("LIKE", "$a", "x", 1),
    ],
)
def test_what_can_not_be_told_is_opaque(term):
    assert isinstance(Form().predicate(term), Opaque)


def test_a_chain_of_a_thousand_needs_no_deep_stack():
    term = A_IS_1
    for _ in range(5000):
        term = ("OR", term, A_IS_1)
    assert len(Form().predicate(term).children()) == 5001
