"""Spark's data filters as one of our predicates, which skips files by statistics (spec 9.5).

A filter that we can't translate skips no files. Spark filters the rows again anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import and_
from typing import Any, TypeAlias

from optimist.core.predicates.normal_form import combine_masks, positive_form
from optimist.core.predicates.tree import Not, Opaque, Predicate
from optimist.core.schema.types import StructType
from optimist.spark.conditions.catalyst_expressions import CatalystPredicates
from optimist.spark.conditions.connector_predicates import ConnectorPredicates

__all__ = ["data_predicate"]

_Path: TypeAlias = tuple[str, ...]
_UNKNOWN = Opaque("?", frozenset(), deterministic=True)


def data_predicate(
    filters: Iterable[Any],
    schema: StructType,
    named: Callable[[_Path, StructType], _Path | None],
    form: type[CatalystPredicates | ConnectorPredicates] = CatalystPredicates,
) -> Predicate:
    """Return the conjunction of the filters by which files can be skipped, or TRUE.

    Args:
        filters: The filters from Spark.
        schema: The table's schema, whose names the predicate uses.
        named: Returns the table's names for names in the filters; see `column_paths`.
        form: The translation for the form of the filters.
    """
    translation = form(schema, named, lambda _: _UNKNOWN)
    found = [translation.predicate(item) for item in filters]
    useful = [item for item in found if _can_skip(item)]
    return reduce(and_, useful) if useful else Predicate.TRUE


def _can_skip(predicate: Predicate) -> bool:
    """Check whether statistics could rule a file out.

    They can't if opaque parts match all files.
    """
    if predicate.is_exact:
        return True
    return combine_masks(positive_form(predicate), lambda leaf: not _is_known(leaf)) is not True


def _is_known(leaf: Predicate) -> bool:
    return not isinstance(leaf.child if isinstance(leaf, Not) else leaf, Opaque)
