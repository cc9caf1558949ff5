"""Finds the rows of their inputs that the steps of a client's plan need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from optimist.core.sql.query_needs import folded
from optimist.spark.conditions.connect_determinism import is_deterministic
from optimist.spark.conditions.connect_expressions import (
    attribute_path,
    messages,
    own_expressions,
)

__all__ = ["RowFilter", "filters_below", "limit_below"]

_Names = frozenset[str]
_ROW_BY_ROW = frozenset(("filter", "sort", "hint", "repartition"))
"""Steps through which a filter may go, and that leave names as they are."""
_OF_ONE_ROW = frozenset(
    (
        *("=", "==", "!=", "<", "<=", ">", ">=", "<=>", "and", "or", "not", "!", "in", "isnull"),
        *("isnotnull", "like", "startswith", "endswith", "contains", "+", "-", "*", "/", "%"),
        *("when", "if", "coalesce", "concat", "upper", "lower", "trim", "length", "substring"),
        *("abs", "round", "floor", "ceil", "year", "month", "day", "dayofmonth", "hour", "date"),
        *("to_date", "date_trunc", "struct", "named_struct", "array", "hash", "negative", "nvl"),
    )
)
"""Functions whose value follows from one row, and that make one row of one."""
_KEPT_BY_JOINS = {
    0: ("INNER", "CROSS", "LEFT_OUTER", "LEFT_SEMI", "LEFT_ANTI"),
    1: ("INNER", "CROSS", "RIGHT_OUTER"),
}
"""By the side, left and right: joins in which no row of it stands for a row that is not there."""


@dataclass(frozen=True, slots=True)
class _Step:
    """The meaning below a step of the names above it.

    Attributes:
        kept: Those that mean the same, folded; None for all but the others here.
        made: Those that mean something else, folded.
        renamed: The names below of those that mean a column of another name.
    """

    kept: _Names | None = None
    made: _Names = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)

    def above(self, name: str) -> Iterator[str]:
        """Return the names that a column below the step has above it."""
        news = {folded(new) for new in self.renamed}
        yield from (new for new, old in self.renamed.items() if folded(old) == folded(name))
        is_kept = self.kept is None or folded(name) in self.kept
        if is_kept and folded(name) not in self.made | news:
            yield name


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A condition on the rows of a scan.

    Attributes:
        condition: The message `Expression`.
        alias: The name that it may use for the table.
        steps: What is between it and the scan, and changes names, from the scan on.
        is_joined: Whether it stands above a join, where a name may be that of another table.
    """

    condition: Any
    alias: str | None = None
    steps: tuple[_Step, ...] = ()
    is_joined: bool = False

    def names(self, columns: Iterable[str]) -> Mapping[str, str]:
        """Return the columns of a table that it can mean, by their names there."""
        found = [(name, column) for column in columns for name in self._above(column)]
        times = Counter(folded(name) for name, _ in found)
        return {name: column for name, column in found if times[folded(name)] == 1}

    def is_of(self, path: tuple[str, ...]) -> bool:
        """Return whether a path of names can mean only this column.

        Above a join its first name may be that of another table.
        """
        return len(path) == 1 or not self.is_joined

    def names_plans(self) -> bool:
        """Return whether it names the frame of a column, and not only the column."""
        return any(
            item.DESCRIPTOR.name == "UnresolvedAttribute" and item.HasField("plan_id")
            for item in messages(self.condition)
        )

    def below(self, step: _Step, *, is_joined: bool = False) -> RowFilter:
        """Return the condition below a step."""
        return replace(self, steps=(step, *self.steps), is_joined=is_joined or self.is_joined)

    def _above(self, column: str) -> list[str]:
        names = [column]
        for step in self.steps:
            names = [above for name in names for above in step.above(name)]
        return names


def filters_below(
    kind: str, step: Any, filters: tuple[RowFilter, ...], place: int
) -> tuple[RowFilter, ...]:
    """Return the conditions that all needed rows of an input fulfil.

    Args:
        kind: The kind of the step.
        step: Its message.
        filters: The conditions that its own rows fulfil.
        place: Which of its inputs.
    """
    if kind == "limit" or not all(map(is_deterministic, own_expressions(step))):
        return ()
    if kind == "filter":
        return (*filters, RowFilter(step.condition))
    if kind in _ROW_BY_ROW:
        return filters
    if kind == "subquery_alias":
        return tuple(replace(item, alias=item.alias or step.alias) for item in filters)
    if kind == "join":
        return _of_side(step, filters, place)
    names = _names_of(kind, step)
    return () if names is None else tuple(item.below(names) for item in filters)


def limit_below(kind: str, step: Any, limit: int | None) -> int | None:
    """Return how many rows of its input a limited step needs, or None for all."""
    if kind == "limit":
        most = int(step.limit)
        return most if limit is None else min(most, limit)
    is_plain = kind == "subquery_alias" or (
        kind in ("project", "with_columns") and _names_of(kind, step) is not None
    )
    return limit if is_plain and all(map(is_deterministic, own_expressions(step))) else None


def _of_side(step: Any, filters: tuple[RowFilter, ...], place: int) -> tuple[RowFilter, ...]:
    """Return the conditions above a join that rows of one side fulfil by themselves."""
    kind = step.JoinType.Name(step.join_type).removeprefix("JOIN_TYPE_")
    if kind not in _KEPT_BY_JOINS[place]:
        return ()
    # Of two columns that are one above the join, that is the left one but for a right outer join.
    is_other = place == 1 and kind != "RIGHT_OUTER"
    other = frozenset(map(folded, step.using_columns)) if is_other else frozenset()
    return tuple(item.below(_Step(made=other), is_joined=True) for item in filters)


def _names_of(kind: str, step: Any) -> _Step | None:
    """Return what a step makes of names, or None if a filter may not go through it."""
    if kind in ("project", "with_columns"):
        expressions = list(own_expressions(step))
        if not all(map(_is_of_one_row, expressions)):
            return None
        return _listed(expressions) if kind == "project" else _aliased(step.aliases)
    if kind == "with_columns_renamed":
        return _renamed(step)
    if kind == "aggregate":
        return _grouped(step)
    if kind == "deduplicate" and not step.within_watermark:
        return _Step(None if step.all_columns_as_keys else _folded(step.column_names))
    if kind == "drop":
        paths = [_column(item) for item in step.columns]
        if all(len(path) == 1 for path in paths):
            return _Step(made=_folded(step.column_names) | _folded(path[0] for path in paths))
    return None


def _listed(expressions: list[Any]) -> _Step:
    """Return the names of a list of columns and other values."""
    aliases = [item.alias for item in expressions if item.WhichOneof("expr_type") == "alias"]
    kept = _folded(path[0] for item in expressions if len(path := _column(item)) == 1)
    return replace(
        _aliased(item for item in aliases if folded(item.name[0]) not in kept),
        kept=kept - _folded(item.name[0] for item in aliases),
    )


def _aliased(aliases: Iterable[Any]) -> _Step:
    """Return the columns that messages `Alias` give new names."""
    pairs = [(item.name[0], _column(item.expr)) for item in aliases]
    renamed = {name: path[0] for name, path in pairs if len(path) == 1}
    return _Step(made=_folded(name for name, path in pairs if len(path) != 1), renamed=renamed)


def _grouped(step: Any) -> _Step | None:
    if step.group_type != step.GROUP_TYPE_GROUPBY:
        return None
    keys = _listed(list(step.grouping_expressions))
    values = [one for one in step.aggregate_expressions if one.WhichOneof("expr_type") == "alias"]
    return replace(keys, made=keys.made | _folded(one.alias.name[0] for one in values))


def _renamed(step: Any) -> _Step | None:
    """Rename one name after the other, since Spark may rename a new name again."""
    pairs = [*step.rename_columns_map.items()]
    pairs += [(one.col_name, one.new_col_name) for one in step.renames]
    olds, news = _folded(old for old, _ in pairs), _folded(new for _, new in pairs)
    if len(olds) < len(pairs) or len(news) < len(pairs) or olds & news:
        return None
    return _Step(made=olds, renamed={new: old for old, new in pairs})


def _folded(names: Iterable[str]) -> _Names:
    return frozenset(map(folded, names))


def _is_of_one_row(expression: Any) -> bool:
    kind = expression.WhichOneof("expr_type")
    if kind == "unresolved_function":
        call = expression.unresolved_function
        if call.function_name.lower() not in _OF_ONE_ROW or call.is_user_defined_function:
            return False
    elif kind == "expression_string":
        return bool(_column(expression))
    elif kind not in ("unresolved_attribute", "literal", "alias", "cast"):
        return False
    return all(map(_is_of_one_row, own_expressions(expression)))


def _column(expression: Any) -> tuple[str, ...]:
    """Return the path of a column, or nothing for another expression."""
    kind = expression.WhichOneof("expr_type")
    if kind == "unresolved_attribute":
        return attribute_path(expression.unresolved_attribute.unparsed_identifier)
    if kind == "expression_string" and expression.expression_string.expression.isidentifier():
        return (expression.expression_string.expression,)
    return ()
