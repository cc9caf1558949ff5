"""`(row, files) -> PartitionDirectory` as a Scala function that runs inside the JVM.

A case class with a companion of its own has no `tupled`, and a function written in Python costs a
round trip per call. Java can make a function of any constructor: a method handle behind a
one-method interface.
"""

from __future__ import annotations

from typing import Any

from optimist.spark.session.jvm import Jvm
from optimist.spark.session.pyspark_versions import FILE_SOURCES

__all__ = ["partition_directory_function"]


def partition_directory_function(jvm: Jvm) -> Any:
    """A `Function1` from a pair of partition values and files to a `PartitionDirectory`."""
    java = jvm.root.java.lang.invoke
    types = java.MethodType
    lookup = java.MethodHandles.publicLookup()
    directory = jvm.java_class(FILE_SOURCES + ".PartitionDirectory")
    row = jvm.java_class("org.apache.spark.sql.catalyst.InternalRow")
    files = jvm.java_class("scala.collection.immutable.Seq")
    pair = jvm.java_class("scala.Tuple2")
    anything = jvm.java_class("java.lang.Object")
    void = jvm.root.java.lang.Void.TYPE

    constructor = lookup.findConstructor(
        directory, types.methodType(void, jvm.array(jvm.root.java.lang.Class, [row, files]))
    )
    parts = [
        lookup.findVirtual(pair, name, types.methodType(anything)).asType(
            types.methodType(wanted, pair)
        )
        for name, wanted in (("_1", row), ("_2", files))
    ]
    handles = jvm.array(java.MethodHandle, parts)
    of_two_pairs = java.MethodHandles.filterArguments(constructor, 0, handles)
    both_the_same = jvm.gateway.new_array(jvm.root.int, 2)  # zeros: the one pair, twice
    of_pair = java.MethodHandles.permuteArguments(
        of_two_pairs, types.methodType(directory, pair), both_the_same
    )
    function = jvm.java_class("scala.Function1")
    return java.MethodHandleProxies.asInterfaceInstance(function, of_pair)
