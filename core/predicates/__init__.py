"""Predicates: SQL text or a builder to one tree, evaluated over columns and statistics."""

from optimist.core.predicates.builder import col
from optimist.core.predicates.evaluation import evaluate, may_be_true
from optimist.core.predicates.resolution import SplitPredicate, ensure_columns, split_conjuncts
from optimist.core.predicates.tree import Predicate

# Last: the modules of `optimist.core.data` need those above.
from optimist.core.skipping.pruner import FilePruner, RowCount, keep_mask, may_match, prune  # isort: skip
from optimist.core.skipping.statistics import FileStatistics  # isort: skip

__all__ = [
    "FilePruner",
    "FileStatistics",
    "Predicate",
    "RowCount",
    "SplitPredicate",
    "col",
    "ensure_columns",
    "evaluate",
    "keep_mask",
    "may_be_true",
    "may_match",
    "prune",
    "split_conjuncts",
]
