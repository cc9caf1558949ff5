"""How often, after which pauses and on which errors something is tried again."""

from __future__ import annotations

import pytest

from optimist.core.errors import ConfigError, StorageError
from optimist.core.runtime.retry import Patience, call_patiently
from optimist.core.testing import ManualClock


def failure(kind: str = "OPTIMIST_STORE_BUSY", *, retryable: bool = True) -> StorageError:
    return StorageError("no", kind=kind, retryable=retryable)


class Calls:
    """A request that raises what it is given, one after the other, and then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.number = 0

    def __call__(self) -> str:
        self.number += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


@pytest.mark.parametrize("number", [1, 8, 2_000, 1 << 20])
def test_a_pause_lies_in_the_upper_half_of_its_bound_however_late_the_try(number):
    clock = ManualClock()
    began_s = clock.monotonic_s()
    Patience(base_s=0.1, cap_s=5.0).pause(number, clock)
    bound_s = 0.1 if number == 1 else 5.0
    assert bound_s / 2 <= clock.monotonic_s() - began_s <= bound_s


def test_what_is_retryable_is_tried_as_often_as_allowed():
    calls = Calls(failure(), failure())
    assert call_patiently(calls, Patience(max_tries=3), ManualClock()) == "answer"
    calls = Calls(failure(), failure())
    with pytest.raises(StorageError):
        call_patiently(calls, Patience(max_tries=2), ManualClock())
    assert calls.number == 2


@pytest.mark.parametrize(
    "error",
    [failure(retryable=False), failure("OPTIMIST_FILE_CHANGED"), ConfigError("no", kind="K")],
)
def test_what_is_final_is_tried_once(error):
    calls = Calls(error)
    with pytest.raises(type(error)) as caught:
        call_patiently(calls, Patience(), ManualClock())
    assert (caught.value, calls.number) == (error, 1)


def test_an_error_of_an_sdk_becomes_ours_and_one_of_ours_stays():
    first, second = OSError("reset"), ConfigError("no", kind="K")
    calls = Calls(first, second)
    seen = []

    def error_of(error: Exception) -> StorageError:
        seen.append(error)
        return failure()

    with pytest.raises(ConfigError) as caught:
        call_patiently(calls, Patience(), ManualClock(), error_of=error_of)
    assert (caught.value, seen) == (second, [first])
