"""Predicates: trees from SQL text or a builder, evaluated over columns and statistics."""

from optimist.core.predicates.builder import col
from optimist.core.predicates.evaluation import evaluate, may_be_true
from optimist.core.predicates.resolution import SplitPredicate, ensure_columns, split_conjuncts
from optimist.core.predicates.tree import Predicate

__all__ = [
    "Predicate",
    "SplitPredicate",
    "col",
    "ensure_columns",
    "evaluate",
    "may_be_true",
    "split_conjuncts",
]
