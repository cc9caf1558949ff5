"""Nested columns that are absent, null or empty: a sample of `tests/exhaustive`."""

from __future__ import annotations

import pytest

from lacking_fields import KINDS, Lacking, nested_types, problem, spelled, steps

TYPES = {spelled(kind): kind for kind in nested_types(2)}
SAMPLE = ("v", "Sl", "Sv", "sSl", "av", "mSv", "Smv", "sav")


@pytest.mark.parametrize("how", KINDS[:2])
def test_each_command_keeps_what_lacks_in_a_variant(tmp_path, how):
    ensure_right(tmp_path, TYPES["v"], how)


@pytest.mark.parametrize("at", range(len(SAMPLE)))
def test_some_commands_keep_what_lacks_in_some_types(tmp_path, at):
    ensure_right(tmp_path, TYPES[SAMPLE[at]], KINDS[at % 3], start=at % 3, every=3)


def ensure_right(path, kind, how, start=0, every=1):
    names = list(steps(Lacking.write(path / "names", kind, how)))[start::every]
    assert names
    found = [problem(Lacking.write(path / name, kind, how), name) for name in names]
    assert [item for item in found if item] == []
