"""Calls that must be refused, and by which kind of error."""

from __future__ import annotations

import pytest

from optimist.core.errors import OptimistError


def fails(kind, call, *args, **options):
    """The error of a call, which must be of that kind."""
    with pytest.raises(OptimistError) as caught:
        call(*args, **options)
    assert caught.value.kind == kind, caught.value
    return caught.value


def kind_of(call, *args, **options):
    """The kind of the error of a call, which must have one."""
    with pytest.raises(OptimistError) as caught:
        call(*args, **options)
    return caught.value.kind


def kind_if_refused(call, *args, **options):
    """The kind of the error of a call; None if it has none."""
    try:
        call(*args, **options)
    except OptimistError as error:
        return error.kind
    return None
