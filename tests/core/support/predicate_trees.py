"""Random predicates out of random leaves."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from optimist.core.predicates import Predicate
from optimist.core.predicates.tree import IsTrue, Not


def trees_of(leaves: SearchStrategy[Predicate], *, max_leaves: int) -> SearchStrategy[Predicate]:
    """Predicates that combine such leaves by AND, OR, NOT and IS TRUE."""
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(lambda a, b: a & b, inner, inner),
            st.builds(lambda a, b: a | b, inner, inner),
            st.builds(Not, inner),
            st.builds(IsTrue, inner),
        ),
        max_leaves=max_leaves,
    )
