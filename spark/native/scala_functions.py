"""Scala functions inside the JVM: parts of pairs, partition directories, tests of rows.

A case class with its own companion has no `tupled`, and a Python function costs a round trip per
call. But Java can make a function of any method or constructor, by a method handle.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from optimist.spark.session.jvm import Jvm
from optimist.spark.session.pyspark_versions import FILE_SOURCES

__all__ = ["pair_part_function", "partition_directory_function", "row_test"]

_PAIR = "scala.Tuple2"
_PREDICATE = "org.apache.spark.sql.catalyst.expressions.BasePredicate"
_ROW = "org.apache.spark.sql.catalyst.InternalRow"
_MADE: weakref.WeakKeyDictionary[Jvm, dict[str, Any]] = weakref.WeakKeyDictionary()


def pair_part_function(jvm: Jvm, name: str) -> Any:
    """Return a `Function1` from a pair to its part `_1` or `_2`."""
    return _make_once(jvm, name, lambda: _function(jvm, _pair_part(jvm, name)))


def partition_directory_function(jvm: Jvm) -> Any:
    """Return a `Function1` from partition values and files to a `PartitionDirectory`."""
    return _make_once(jvm, "PartitionDirectory", lambda: _make_directory_function(jvm))


def row_test(jvm: Jvm, predicate: Any) -> Any:
    """Return a `Function1` that tests a row by Catalyst's predicate."""
    eval_row = _make_once(jvm, "eval", lambda: _predicate_eval(jvm))
    return _function(jvm, eval_row.bindTo(predicate))


def _make_once(jvm: Jvm, name: str, make: Callable[[], Any]) -> Any:
    """Make an object once for each JVM, since each takes dozens of round trips."""
    made = _MADE.setdefault(jvm, {})
    if name not in made:
        made[name] = make()
    return made[name]


def _make_directory_function(jvm: Jvm) -> Any:
    java = jvm.root.java.lang.invoke
    types = java.MethodType
    directory = jvm.java_class(FILE_SOURCES + ".PartitionDirectory")
    row = jvm.java_class(_ROW)
    files = jvm.java_class("scala.collection.immutable.Seq")
    pair = jvm.java_class(_PAIR)
    void = jvm.root.java.lang.Void.TYPE

    constructor = java.MethodHandles.publicLookup().findConstructor(
        directory, types.methodType(void, jvm.array(jvm.root.java.lang.Class, [row, files]))
    )
    parts = [
        _pair_part(jvm, name).asType(types.methodType(wanted, pair))
        for name, wanted in (("_1", row), ("_2", files))
    ]
    handles = jvm.array(java.MethodHandle, parts)
    of_two_pairs = java.MethodHandles.filterArguments(constructor, 0, handles)
    both_the_same = jvm.gateway.new_array(jvm.root.int, 2)  # zeros: both arguments are the pair
    of_pair = java.MethodHandles.permuteArguments(
        of_two_pairs, types.methodType(directory, pair), both_the_same
    )
    return _function(jvm, of_pair)


def _pair_part(jvm: Jvm, name: str) -> Any:
    java = jvm.root.java.lang.invoke
    anything = java.MethodType.methodType(jvm.java_class("java.lang.Object"))
    return java.MethodHandles.publicLookup().findVirtual(jvm.java_class(_PAIR), name, anything)


def _predicate_eval(jvm: Jvm) -> Any:
    java = jvm.root.java.lang
    takes_row = java.invoke.MethodType.methodType(java.Boolean.TYPE, jvm.java_class(_ROW))
    found = java.invoke.MethodHandles.publicLookup()
    return found.findVirtual(jvm.java_class(_PREDICATE), "eval", takes_row)


def _function(jvm: Jvm, handle: Any) -> Any:
    proxies = jvm.root.java.lang.invoke.MethodHandleProxies
    return proxies.asInterfaceInstance(jvm.java_class("scala.Function1"), handle)
