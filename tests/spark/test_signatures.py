"""Every public name of `delta` 4.4 is here, with its parameters, their order, defaults and types.

`LISTING` is the signatures of delta-spark as its users see them.
"""

from __future__ import annotations

import ast
import inspect
import re

import pytest

from optimist.spark import DeltaMergeBuilder, DeltaTable, exceptions
from optimist.spark.commands.maintenance.optimize_builder import DeltaOptimizeBuilder
from optimist.spark.commands.table_builder import DeltaTableBuilder, IdentityGenerator

CLASSES = {
    "DeltaTable": DeltaTable,
    "DeltaMergeBuilder": DeltaMergeBuilder,
    "DeltaOptimizeBuilder": DeltaOptimizeBuilder,
    "DeltaTableBuilder": DeltaTableBuilder,
    "IdentityGenerator": IdentityGenerator,
}

LISTING = """
class DeltaTable:
    def toDF(self) -> DataFrame: ...
    def alias(self, aliasName: str) -> DeltaTable: ...
    def generate(self, mode: str) -> None: ...
    def delete(self, condition: OptionalExpressionOrColumn = None) -> DataFrame | None: ...
    def update(self, condition: OptionalExpressionOrColumn = None, set: OptionalColumnMapping = None) -> DataFrame | None: ...
    def merge(self, source: DataFrame, condition: ExpressionOrColumn) -> DeltaMergeBuilder: ...
    def vacuum(self, retentionHours: float | None = None) -> DataFrame: ...
    def history(self, limit: int | None = None) -> DataFrame: ...
    def detail(self) -> DataFrame: ...
    @classmethod
    def convertToDelta(cls, sparkSession: SparkSession, identifier: str, partitionSchema: str | StructType | None = None) -> DeltaTable: ...
    @classmethod
    def forPath(cls, sparkSession: SparkSession, path: str, hadoopConf: Dict[str, str] = {}) -> DeltaTable: ...
    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable: ...
    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder: ...
    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder: ...
    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder: ...
    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder: ...
    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool: ...
    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None: ...
    def addFeatureSupport(self, featureName: str) -> None: ...
    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None: ...
    def restoreToVersion(self, version: int) -> DataFrame: ...
    def restoreToTimestamp(self, timestamp: str) -> DataFrame: ...
    def optimize(self) -> DeltaOptimizeBuilder: ...
    def clone(self, target: str, isShallow: bool = False, replace: bool = False, properties: Dict[str, str] | None = None) -> DeltaTable: ...
    def cloneAtVersion(self, version: int, target: str, isShallow: bool = False, replace: bool = False, properties: Dict[str, str] | None = None) -> DeltaTable: ...
    def cloneAtTimestamp(self, timestamp: str, target: str, isShallow: bool = False, replace: bool = False, properties: Dict[str, str] | None = None) -> DeltaTable: ...

class DeltaMergeBuilder:
    def whenMatchedUpdate(self, condition: OptionalExpressionOrColumn = None, set: OptionalColumnMapping = None) -> DeltaMergeBuilder: ...
    def whenMatchedUpdateAll(self, condition: OptionalExpressionOrColumn = None) -> DeltaMergeBuilder: ...
    def whenMatchedDelete(self, condition: OptionalExpressionOrColumn = None) -> DeltaMergeBuilder: ...
    def whenNotMatchedInsert(self, condition: OptionalExpressionOrColumn = None, values: OptionalColumnMapping = None) -> DeltaMergeBuilder: ...
    def whenNotMatchedInsertAll(self, condition: OptionalExpressionOrColumn = None) -> DeltaMergeBuilder: ...
    def whenNotMatchedBySourceUpdate(self, condition: OptionalExpressionOrColumn = None, set: OptionalColumnMapping = None) -> DeltaMergeBuilder: ...
    def whenNotMatchedBySourceDelete(self, condition: OptionalExpressionOrColumn = None) -> DeltaMergeBuilder: ...
    def withSchemaEvolution(self) -> DeltaMergeBuilder: ...
    def execute(self) -> DataFrame: ...

class DeltaOptimizeBuilder:
    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder: ...
    def executeCompaction(self) -> DataFrame: ...
    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame: ...

class IdentityGenerator:
    def __init__(self, start: int = 1, step: int = 1) -> None: ...

class DeltaTableBuilder:
    def tableName(self, identifier: str) -> DeltaTableBuilder: ...
    def location(self, location: str) -> DeltaTableBuilder: ...
    def comment(self, comment: str) -> DeltaTableBuilder: ...
    def addColumn(self, colName: str, dataType: str | DataType, nullable: bool = True, generatedAlwaysAs: str | IdentityGenerator | None = None, generatedByDefaultAs: IdentityGenerator | None = None, comment: str | None = None) -> DeltaTableBuilder: ...
    def addColumns(self, cols: StructType | list[StructField]) -> DeltaTableBuilder: ...
    def partitionedBy(self, *cols: str | list[str] | tuple[str, ...]) -> DeltaTableBuilder: ...
    def clusterBy(self, *cols: str | list[str] | tuple[str, ...]) -> DeltaTableBuilder: ...
    def property(self, key: str, value: str) -> DeltaTableBuilder: ...
    def execute(self) -> DeltaTable: ...
"""  # noqa: E501

WIDER = {
    "TablePath": "str",  # a path object will do, too
    "Mapping[str, str]": "Dict[str, str]",
    "ExpressionOrColumn | None": "OptionalExpressionOrColumn",
    "Mapping[str, ExpressionOrColumn] | None": "OptionalColumnMapping",
}
"""Types of ours that take more than what they stand for."""

EXCEPTIONS = [
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "DeltaConcurrentModificationException",
    "MetadataChangedException",
    "ProtocolChangedException",
]


def listed():
    for found in ast.parse(LISTING).body:
        for method in found.body:
            yield found.name, method.name, method


OURS = {"alter", "transaction"}
"""What delta-spark has in SQL only."""
METHODS = list(listed())


def type_of(text):
    """A type of ours as the listing writes it."""
    plain = re.sub(r"\bst\.", "", text)
    for ours, theirs in WIDER.items():
        plain = plain.replace(ours, theirs)
    return plain


def described(arguments, returns):
    """Names, kinds, defaults and types of parameters, and the type of the result."""
    return [*arguments, ("return", returns)]


def wanted(method):
    args = method.args
    names = args.args[1:]
    defaults = [None] * (len(names) - len(args.defaults)) + args.defaults
    parts = [
        (
            item.arg,
            "one",
            ast.unparse(item.annotation),
            default and ast.literal_eval(default),
            bool(default),
        )
        for item, default in zip(names, defaults, strict=True)
    ]
    if args.vararg:
        parts.append((args.vararg.arg, "any", ast.unparse(args.vararg.annotation), None, False))
    return described(parts, ast.unparse(method.returns))


def found(function):
    signature = inspect.signature(function)
    parameters = [
        item for name, item in signature.parameters.items() if name not in ("self", "cls")
    ]
    parts = [
        (
            item.name,
            "any" if item.kind is item.VAR_POSITIONAL else "one",
            type_of(str(item.annotation)),
            None if item.default is item.empty else item.default,
            item.default is not item.empty,
        )
        for item in parameters
    ]
    return described(parts, type_of(str(signature.return_annotation)))


@pytest.mark.parametrize(
    ("owner", "name", "method"), METHODS, ids=[f"{a}.{b}" for a, b, _ in METHODS]
)
def test_a_method_has_the_signature_of_the_listing(owner, name, method):
    function = inspect.getattr_static(CLASSES[owner], name)
    is_class_method = isinstance(function, classmethod)
    assert is_class_method == any(
        ast.unparse(item) == "classmethod" for item in method.decorator_list
    )
    assert found(getattr(CLASSES[owner], name)) == wanted(method)


@pytest.mark.parametrize("owner", ["DeltaTable", "DeltaMergeBuilder", "DeltaTableBuilder"])
def test_nothing_public_exists_beside_the_listing(owner):
    listed_names = {name for one, name, _ in METHODS if one == owner}
    names = {name for name in dir(CLASSES[owner]) if not name.startswith("_")}
    assert names - OURS == listed_names - {"__init__"}


def test_the_conflicts_are_the_very_classes_that_are_raised():
    from optimist.core import errors

    assert sorted(exceptions.__all__) == EXCEPTIONS
    assert all(getattr(exceptions, name) is getattr(errors, name) for name in EXCEPTIONS)


def test_a_generator_of_numbers_is_a_value():
    assert IdentityGenerator() == IdentityGenerator(1, 1) == IdentityGenerator(start=1, step=1)
    changed = IdentityGenerator(5)
    changed.step = -2
    assert (changed.start, changed.step) == (5, -2)
