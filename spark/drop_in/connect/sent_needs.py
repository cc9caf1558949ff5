"""Finds the columns that the plan of a Spark Connect client leaves unread.

Each answer rests on a rule that holds whatever else stands in the plan:

- A plan can't read a column without naming it, but by a star, a pattern, or a step that takes its
  columns by their places (`union`, `toDF`, `mapInArrow`, ...), as the user who gets the rows does.
  Between a scan and such a step there must be a projection or an aggregate: then the names in the
  plan are all that is read, wherever they stand.
- Rows that a filter drops take no part in anything above it. It may be applied at the scan if
  between them there are only steps that look at rows one by one, or at all of them alike, and no
  value that is drawn at random or follows from the place of a row: it would be another one.
  Groups take it where it names what they are grouped by, and a join the side whose rows it keeps
  or drops whatever they meet.
- If a limit is above nothing but such projections, any n rows will do.

Everything else is taken to need all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from optimist.core.sql import Mentions, mentions_of_expression
from optimist.core.sql.query_needs import folded
from optimist.spark.arrow.sent_scans import is_scan
from optimist.spark.conditions.connect_expressions import (
    NAMING_NO_OTHERS,
    attribute_path,
    messages,
    own_expressions,
    parts,
)
from optimist.spark.drop_in.connect.sent_rows import RowFilter, filters_below, limit_below

__all__ = ["ScanNeeds", "has_unknown_names", "mentions", "needs_of_scans"]

_BY_NAME = frozenset(
    (
        *("subquery_alias", "filter", "sort", "limit", "offset", "sample", "hint", "join"),
        *("repartition", "repartition_by_expression", "with_columns", "with_columns_renamed"),
        *("drop", "fill_na", "replace", "collect_metrics", "deduplicate", "drop_na"),
    )
)
"""Steps that take those columns of their input that they name, and hand on the others."""
_CHOOSING = frozenset(("project", "aggregate"))
"""Steps behind which there are no columns but those that they name."""
_NAME_FIELDS = {
    "Join": "using_columns",
    "Deduplicate": "column_names",
    "NAFill": "cols",
    "NADrop": "cols",
    "NAReplace": "cols",
    "Drop": "column_names",
}


@dataclass(frozen=True, slots=True)
class ScanNeeds:
    """The rows and columns that are needed of a scan.

    Attributes:
        takes_all: All columns; otherwise those that the plan mentions.
        filters: Conditions that all needed rows fulfil.
        limit: How many rows are enough; None for all.
    """

    takes_all: bool = True
    filters: tuple[RowFilter, ...] = ()
    limit: int | None = None


def mentions(relation: Any) -> Mentions:
    """Return all names in a plan, those in its texts included."""
    chains: list[Iterable[tuple[str, ...]]] = []
    for item in messages(relation):
        kind = item.DESCRIPTOR.name
        if kind == "UnresolvedAttribute":
            chains.append([attribute_path(item.unparsed_identifier)])
        elif kind == "ExpressionString":
            found = mentions_of_expression(item.expression)
            if found is not None:
                chains.append(found.chains())
        elif kind == "WithColumnsRenamed":
            olds = (*item.rename_columns_map, *(one.col_name for one in item.renames))
            chains.append((name,) for name in olds)
        elif kind in _NAME_FIELDS:
            chains.append((name,) for name in getattr(item, _NAME_FIELDS[kind]))
    return Mentions.of_chains(chain.from_iterable(chains))


def has_unknown_names(relation: Any, columns: Iterable[str]) -> bool:
    """Return whether a plan over these columns names one that can't be there."""
    known = set(map(folded, columns))
    named: list[tuple[str, ...]] = []
    for item in messages(relation):
        kind = item.DESCRIPTOR.name
        if kind == "UnresolvedAttribute":
            named.append(attribute_path(item.unparsed_identifier))
        elif kind == "Relation":
            step = item.WhichOneof("rel_type")
            if not is_scan(item) and step not in (*_BY_NAME, *_CHOOSING, "show_string"):
                return False  # there may be columns of others
        elif kind == "Alias":
            known.update(map(folded, item.name))
        elif kind == "SubqueryAlias":
            known.add(folded(item.alias))
        elif kind == "WithColumnsRenamed":
            news = (*item.rename_columns_map.values(), *(one.new_col_name for one in item.renames))
            known.update(map(folded, news))
    return any(known.isdisjoint(map(folded, path)) for path in named if "(" not in path[-1])


def needs_of_scans(
    relation: Any, is_kept: Callable[[Any], bool], needs: ScanNeeds = ScanNeeds()
) -> Iterator[tuple[Any, ScanNeeds]]:
    """Return the scans of our tables in a plan, each with what is needed of it.

    Args:
        relation: A message `Relation`.
        is_kept: Tells parts of the plan that are to stay as they are.
        needs: What is needed of all its rows.
    """
    if is_kept(relation):
        return
    kind = relation.WhichOneof("rel_type")
    if kind is None or is_scan(relation):
        if kind is not None:
            yield relation, needs
        return
    step = getattr(relation, kind)
    below = _below(kind, step, needs)
    for place, part in enumerate(_inputs(step)):
        filters = filters_below(kind, step, needs.filters, place)
        yield from needs_of_scans(part, is_kept, replace(below, filters=filters))


def _below(kind: str, step: Any, needs: ScanNeeds) -> ScanNeeds:
    """Return what a step needs of all its inputs."""
    limit = limit_below(kind, step, needs.limit)
    if kind in ("show_string", "html_string"):
        limit = max(0, step.num_rows) + 1  # it tells whether there are more
    takes_all = True
    if kind in _CHOOSING or (kind in _BY_NAME and not needs.takes_all):
        takes_all = _takes_all(kind, step)
    return ScanNeeds(takes_all, limit=limit)


def _takes_all(kind: str, step: Any) -> bool:
    """Return whether a step itself reads columns that it does not name."""
    if kind == "deduplicate" and (step.all_columns_as_keys or not step.column_names):
        return True
    if kind == "drop_na" and not step.cols:
        return True
    if kind == "sample" and step.deterministic_order:
        return True  # as in `randomSplit`, whose parts sort the rows by all their columns
    return any(_names_too_little(item) for item in own_expressions(step))


def _names_too_little(expression: Any) -> bool:
    kind = expression.WhichOneof("expr_type")
    if kind == "unresolved_function" and _counts_rows(expression.unresolved_function):
        return False
    if kind == "expression_string":
        found = mentions_of_expression(expression.expression_string.expression)
        return found is None or found.has_patterns
    if kind not in NAMING_NO_OTHERS and kind not in _MORE_NAMING_NO_OTHERS:
        return True
    return any(_names_too_little(item) for item in own_expressions(expression))


_MORE_NAMING_NO_OTHERS = frozenset(("unresolved_attribute", "sort_order", "window"))


def _counts_rows(call: Any) -> bool:
    """Return whether it is `count(*)`."""
    if call.function_name.lower() != "count" or call.is_distinct or len(call.arguments) != 1:
        return False
    (only,) = call.arguments
    kind = only.WhichOneof("expr_type")
    return kind == "unresolved_star" and not only.unresolved_star.unparsed_target


def _inputs(message: Any) -> Iterator[Any]:
    """Return the relations right below a message."""
    for item in parts(message):
        if item.DESCRIPTOR.name == "Relation":
            yield item
        else:
            yield from _inputs(item)
