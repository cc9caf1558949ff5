from __future__ import annotations

import inspect
import pickle

import pytest

from optimist.core import errors
from optimist.core.errors import (
    ArgumentTypeError,
    CommitOutcomeUnknownError,
    ConcurrentAppendException,
    ConfigError,
    Conflict,
    DeltaConcurrentModificationException,
    LogFileExistsError,
    LogFileNotFoundError,
    OptimistError,
    SchemaError,
    StorageError,
    TableNotFoundError,
    UsageError,
)

_CLASSES = [
    item
    for _, item in inspect.getmembers(errors, inspect.isclass)
    if issubclass(item, OptimistError)
]


@pytest.mark.parametrize("cls", _CLASSES)
def test_every_error_survives_pickling_with_kind_and_fields(cls: type[OptimistError]) -> None:
    error = cls("what happened", kind="SOME_KIND", path="/t", version=3)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert (again.kind, dict(again.fields), again.args) == (
        "SOME_KIND",
        {"path": "/t", "version": 3},
        ("what happened",),
    )
    assert str(again) == "[SOME_KIND] what happened"


def test_every_public_name_is_exported() -> None:
    others = {"Conflict", "NOTHING_COMMITTED"}
    assert set(errors.__all__) == {cls.__name__ for cls in _CLASSES} | others


@pytest.mark.parametrize(
    ("cls", "builtin"),
    [
        (UsageError, ValueError),
        (ArgumentTypeError, TypeError),
        (ArgumentTypeError, ValueError),
        (ConfigError, ValueError),
        (SchemaError, ValueError),
        (LogFileExistsError, FileExistsError),
        (LogFileNotFoundError, FileNotFoundError),
        (TableNotFoundError, FileNotFoundError),
    ],
)
def test_errors_are_caught_by_the_builtin_a_caller_would_name(cls, builtin) -> None:
    with pytest.raises(builtin):
        raise cls("x", kind="K")


def test_fields_can_not_be_changed() -> None:
    with pytest.raises(TypeError):
        OptimistError("x", kind="K", a=1).fields["a"] = 2


def test_conflict_is_a_value_on_the_error() -> None:
    conflict = Conflict("append", 4, "WRITE", "engine")
    error = ConcurrentAppendException("x", kind="DELTA_CONCURRENT_APPEND", conflict=conflict)
    assert isinstance(error, DeltaConcurrentModificationException)
    assert error.conflict is conflict
    assert pickle.loads(pickle.dumps(error)).conflict == conflict


def test_unknown_outcome_names_transaction_and_version() -> None:
    error = CommitOutcomeUnknownError("x", kind="K", txn_id="abc", version=7)
    assert (error.txn_id, error.version) == ("abc", 7)


@pytest.mark.parametrize(("fields", "expected"), [({}, False), ({"retryable": True}, True)])
def test_storage_error_says_whether_to_try_again(fields, expected) -> None:
    assert StorageError("x", kind="K", **fields).retryable is expected
