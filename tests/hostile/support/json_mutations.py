"""One change at a random place of a JSON document; texts that hold JSON again are gone into."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hostile_values import Chance, Raw, Surroundings, hostile_value, render

__all__ = ["mutated_json"]

_INTO_EMBEDDED = 0.7
_Place = tuple[Any, Any]


def mutated_json(document: Any, chance: Chance, around: Surroundings) -> tuple[Any, str]:
    """The document with one place of it changed, and words that say which."""
    document = copy.deepcopy(document)
    places = list(_places(document))
    if not places:
        return hostile_value(chance, around, document), "all of it"
    container, key = chance.choice(places)
    value = container[key]
    if isinstance(value, str) and value[:1] in ("{", "[") and chance.random() < _INTO_EMBEDDED:
        embedded = _parsed(value)
        if embedded is not None:
            changed, said = mutated_json(embedded, chance, around)
            container[key] = render(changed)
            return document, f"{key} -> {said}"
    return document, f"{key}: {_change(container, key, chance, around)}"


def _places(value: Any) -> Iterator[_Place]:
    entries: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, dict):
        entries = iter(list(value.items()))
    elif isinstance(value, list):
        entries = iter(list(enumerate(value)))
    for key, item in entries:
        yield value, key
        yield from _places(item)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _change(container: Any, key: Any, chance: Chance, around: Surroundings) -> str:
    value = container[key]
    new = hostile_value(chance, around, value, str(key))
    draw = chance.random()
    if draw < 0.7:
        container[key] = new
        return f"is {_shown(new)}"
    if draw < 0.8:
        del container[key]
        return "is gone"
    if draw < 0.85:
        container[key] = [value] * chance.choice((1, 2, 1000))
        return "is a list of itself"
    if draw < 0.9 and isinstance(container, dict):
        doubled = ",".join(
            f"{json.dumps(name)}:{render(item)}"
            for name, item in [*container.items(), (key, new), *container.items()]
        )
        container.clear()
        # The braces stand around: what is rendered is one entry with a strange key and value.
        container["optimist"] = Raw("0," + doubled)
        return f"is said twice, once as {_shown(new)}"
    if draw < 0.95 and isinstance(container, dict):
        container[str(hostile_value(chance, around, ""))[:1000]] = container.pop(key)
        return "has another name"
    if isinstance(container, list):
        container.extend([value] * chance.choice((1, 100, 10_000)))
        return "is there many times"
    container["unknown"] = new
    return f"has a neighbour {_shown(new)}"


def _shown(value: object) -> str:
    text = value if isinstance(value, Raw) else repr(value)
    return text if len(text) <= 120 else f"{text[:100]}... ({len(text)} characters)"
