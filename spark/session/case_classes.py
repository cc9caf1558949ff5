"""Scala's case classes from Python, whose last fields differ between versions of Spark."""

from __future__ import annotations

from typing import Any

from optimist.spark.session.jvm import Jvm

__all__ = ["make_case_class", "with_field"]


def make_case_class(jvm: Jvm, name: str, *given: Any) -> Any:
    """Make an object of a case class.

    Args:
        jvm: The session's handles.
        name: The full name of the class.
        given: The first fields; the others get their defaults.
    """
    (make,) = jvm.java_class(name).getConstructors()
    defaults = jvm.module(f"{name}$")
    arguments = jvm.root.java.util.ArrayList()
    for value in given:
        arguments.add(value)
    for at in range(len(given) + 1, make.getParameterCount() + 1):
        arguments.add(getattr(defaults, f"apply$default${at}")())
    return make.newInstance(arguments.toArray())


def with_field(value: Any, name: str, part: Any) -> Any:
    """Copy an object of a case class, with another value of one field."""
    fields = range(value.productArity())
    return value.copy(
        *(
            part if value.productElementName(at) == name else value.productElement(at)
            for at in fields
        )
    )
