"""Commands that care for a table answer, and do, what they do under delta-spark.

`python benchmarks/record_delta_spark.py delta_spark_care.json` makes the record, with Delta's jar.
What differs, and why, is listed below; anything else fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from care_answers import CARE, CareAnswers
from history_scenarios import DATABASE, History
from optimist.spark import disable, enable

TOLD = json.loads(Path(__file__).with_name("delta_spark_care.json").read_text("utf-8"))["told"]
DIFFERENT = [
    # Conditions are told as SQL; Delta tells them as its plan's text.
    (r"WHERE|in a partition", r"^history\.parameters\.predicate$"),
    # Each write of ours has a directory of its own.
    (r"^VACUUM", r"^history\.metrics\.numVacuumedDirectories$"),
    # The names of data files are made up.
    (r"^VACUUM of a dry run", r"^answer\.path$"),
    # It arranges nothing; Delta counts nothing of what it would arrange.
    (r"^clustering, then PURGE", r"^answer\.metrics\.clusteringStats$"),
    # The processors of the machine.
    (r"", r"^answer\.metrics\.totalClusterParallelism$"),
]
"""Which cases, and where in what they tell."""


@pytest.fixture(scope="module")
def care(spark, tmp_path_factory):
    enable(spark)
    yield CareAnswers(History(spark, str(tmp_path_factory.mktemp("care"))))
    spark.sql(f"DROP DATABASE {DATABASE} CASCADE")
    disable(spark)


def differences(ours: object, theirs: object, place: str = "") -> Iterator[str]:
    """The places at which two answers differ."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for name in ours.keys() | theirs.keys():
            pair = (part.get(name, "nothing") for part in (ours, theirs))
            yield from differences(*pair, f"{place}.{name}" if place else name)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for mine, other in zip(ours, theirs, strict=True):
            yield from differences(mine, other, place)
    elif ours != theirs:
        yield place


def test_the_record_is_of_these_cases():
    assert list(TOLD) == list(CARE)
    for cases, _ in DIFFERENT:
        assert any(re.search(cases, name) for name in TOLD), cases


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", CARE)
def test_a_command_answers_as_under_delta_spark(care, name):
    ours, theirs = care.answer(CARE[name]), TOLD[name]
    known = [place for cases, place in DIFFERENT if re.search(cases, name)]
    found = set(differences(ours, theirs))
    odd = {place for place in found if not any(re.search(each, place) for each in known)}
    assert not odd, (ours, theirs)


def test_a_difference_is_noticed():
    told = TOLD["OPTIMIZE (plain)"]
    assert not set(differences(told, told))
    assert set(differences({**told, "answer": []}, told)) == {"answer"}
    metrics = {**told["answer"][0]["metrics"], "numFilesAdded": 9}
    changed = {**told, "answer": [{**told["answer"][0], "metrics": metrics}]}
    assert set(differences(changed, told)) == {"answer.metrics.numFilesAdded"}
