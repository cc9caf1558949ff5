"""Sessions that are yet to be made, in the manner of `delta.pip_utils`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from types import MethodType
from typing import Any

from pyspark.sql import SparkSession

from optimist.core.errors import ArgumentTypeError
from optimist.spark.drop_in.enable import enable

__all__ = [
    "configure_spark_with_delta_pip",
    "serve_all_builders",
    "serve_builders_no_more",
    "with_delta",
]

_METHODS = ("getOrCreate", "create")
_ORIGINAL = "optimist_original"
_PACKAGES = "spark.jars.packages"
_DELTAS_OWN = {
    "spark.sql.extensions": "io.delta.",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.",
    _PACKAGES: "io.delta:",
}
"""Conf keys that scripts set for Delta's jar, and how their values begin."""


def with_delta(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Let a builder make sessions for which `enable` has been called.

    What the builder was told for Delta's jar (its package, extension and catalog) is left out.

    Args:
        builder: A builder of classic sessions; it is changed.

    Returns:
        The same builder.

    Raises:
        ArgumentTypeError: It is no builder.
    """
    if not isinstance(builder, SparkSession.Builder):
        raise ArgumentTypeError(
            "The argument spark_session_builder must be a SparkSession.Builder, found to be "
            f"{type(builder)}. Give SparkSession.builder, before getOrCreate().",
            kind="OPTIMIST_INVALID_ARGUMENT_TYPE",
            argument="spark_session_builder",
        )
    if not hasattr(builder.getOrCreate, _ORIGINAL):
        for name in _METHODS:
            setattr(builder, name, MethodType(_enabling(getattr(type(builder), name)), builder))
    return builder


def configure_spark_with_delta_pip(
    spark_session_builder: SparkSession.Builder, extra_packages: Sequence[str] | None = None
) -> SparkSession.Builder:
    """Do `with_delta` under Delta's name, with other packages that Spark is to fetch.

    Args:
        spark_session_builder: See `with_delta`.
        extra_packages: Maven coordinates.
    """
    builder = with_delta(spark_session_builder)
    if extra_packages:
        builder.config(_PACKAGES, ",".join(extra_packages))
    return builder


def serve_all_builders() -> None:
    """Do `with_delta` to each builder of this process, also to those to come."""
    if not hasattr(SparkSession.Builder.getOrCreate, _ORIGINAL):
        for name in _METHODS:
            setattr(SparkSession.Builder, name, _enabling(getattr(SparkSession.Builder, name)))


def serve_builders_no_more() -> None:
    """Undo `serve_all_builders`, but for sessions that were made."""
    for name in _METHODS:
        method = getattr(SparkSession.Builder, name)
        setattr(SparkSession.Builder, name, getattr(method, _ORIGINAL, method))


def _enabling(make: Callable[..., SparkSession]) -> Callable[..., SparkSession]:
    @wraps(make)
    def make_enabled(builder: SparkSession.Builder) -> SparkSession:
        _leave_out_delta(builder)
        return enable(make(builder))

    setattr(make_enabled, _ORIGINAL, make)
    return make_enabled


def _leave_out_delta(builder: SparkSession.Builder) -> None:
    options: dict[str, Any] = builder._options
    for key, beginning in _DELTAS_OWN.items():
        if key not in options:
            continue
        parts = [part.strip() for part in str(options.pop(key)).split(",")]
        kept = [part for part in parts if part and not part.startswith(beginning)]
        if kept:
            builder.config(key, ",".join(kept))
