"""The names in an expression that are columns and not variables of lambdas."""

from __future__ import annotations

from collections.abc import Iterator

from optimist.core.expressions.tree import Expression, Lambda, Name

__all__ = ["free_names"]


def free_names(expression: Expression) -> Iterator[Name]:
    """Yield the names that are not variables of lambdas, in the order of the text."""
    pending: list[tuple[Expression, frozenset[str]]] = [(expression, frozenset())]
    while pending:
        node, bound = pending.pop()
        if isinstance(node, Name):
            if node.path[0].lower() not in bound:
                yield node
            continue
        if isinstance(node, Lambda):
            bound = bound.union(name.lower() for name in node.variables)
        pending.extend((part, bound) for part in reversed(list(node.children())))
