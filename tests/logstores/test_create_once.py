"""The rule of all object stores, against every course that three requests can take.

A course is a world: what the server did with each request before it answered, and when another
writer created the object. The rule sees the answers alone. It may say what it likes about those
that are compatible with both, and must be right about all others.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

import pytest

from optimist.core.errors import StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.runtime.budget import current_budget, within_budget
from optimist.core.runtime.retry import Patience
from optimist.core.testing import ManualClock
from optimist.logstores.shared.answer_table import PutMeaning
from optimist.logstores.shared.create_once import create_once

CREATED = "created"
ANSWERS = (CREATED, *PutMeaning)
TRIES = 3
APPLIED_FIRST = (PutMeaning.SLOW_DOWN, PutMeaning.UNKNOWN)
"""Answers that may come although the server has done what it was asked."""


class AnsweredError(Exception):
    """What an SDK raises for an answer."""


def meaning_of(error):
    return error.args[0]


def error_of(error):
    return StorageError(str(error), kind="OPTIMIST_REQUEST_REFUSED", retryable=False)


def outcome_of(answers):
    """What the rule says, and how many requests it made."""
    waiting = iter(answers)
    sent = []

    def send():
        answer = next(waiting)
        sent.append(answer)
        if answer is CREATED:
            return "tag"
        raise AnsweredError(answer)

    try:
        outcome, _ = create_once(
            send, meaning_of, error_of, Patience(TRIES), ManualClock(), size_bytes=1
        )
    except StorageError:
        return "error", len(sent)
    return outcome, len(sent)


def courses():
    """For each sequence of answers, whose the object can be in the end."""
    owners = defaultdict(set)
    for steps in itertools.product(ANSWERS, (False, True), (False, True), repeat=TRIES):
        owner, answers = None, []
        for answer, is_applied, other_comes in zip(*[iter(steps)] * 3, strict=True):
            if other_comes and owner is None:
                owner = "other"
            if not is_possible(answer, is_applied, owner):
                break
            owner = "ours" if is_applied else owner
            answers.append(answer)
            owners[tuple(answers)].add(owner)
        # Another may come after the last request: that changes nobody's claim.
    return owners


def is_possible(answer, is_applied, owner):
    if is_applied and owner is not None:
        return False
    if answer is CREATED:
        return is_applied
    if answer is PutMeaning.EXISTS:
        return owner is not None and not is_applied
    return not is_applied or answer in APPLIED_FIRST


OWNERS = courses()
SEQUENCES = sorted(
    {answers[: outcome_of(answers)[1]] for answers in OWNERS if len(answers) == TRIES}, key=str
)


@pytest.mark.parametrize("answers", SEQUENCES, ids=str)
def test_what_is_said_holds_in_every_world_and_is_said_wherever_it_can_be(answers):
    outcome, owners = outcome_of(answers)[0], OWNERS[answers]
    if owners == {"ours"}:
        assert outcome is PutOutcome.CREATED
    elif "ours" in owners:
        assert outcome is PutOutcome.UNKNOWN
    elif answers[-1] is PutMeaning.EXISTS:
        assert outcome is PutOutcome.EXISTS
    else:
        assert outcome == "error"


def test_all_kinds_of_courses_are_among_them():
    assert len(SEQUENCES) > 20
    assert {str(outcome_of(answers)[0]) for answers in SEQUENCES} == {
        *(str(item) for item in PutOutcome),
        "error",
    }


class SpentInPauses(ManualClock):
    """While one pauses, another request of the same operation takes all the time there is."""

    def sleep(self, duration_s):
        begun = self.monotonic_s()
        super().sleep(100)
        current_budget().lose(begun)


@pytest.mark.parametrize(("clock", "taken_s"), [(ManualClock(), 100), (SpentInPauses(), 1)])
@pytest.mark.parametrize(
    ("first", "expected"), [(PutMeaning.CONFLICT, "error"), (PutMeaning.SLOW_DOWN, "unknown")]
)
def test_no_time_for_another_request_proves_nothing_about_the_first(
    first, expected, clock, taken_s
):
    def send():
        clock.advance(taken_s)
        raise AnsweredError(first)

    with within_budget(clock, 60):
        try:
            said = create_once(send, meaning_of, error_of, Patience(TRIES), clock, size_bytes=1)[
                0
            ].value
        except StorageError:
            said = "error"
    assert said == expected
