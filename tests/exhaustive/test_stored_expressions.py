"""Random expressions: what stands in a table's log means what the text meant."""

from __future__ import annotations

from random import Random  # noqa: TID251 - a case is its seed

import pytest

from random_expressions import changed_meaning, random_text

PER_CASE = 1_000


@pytest.mark.parametrize("block", range(17))
def test_the_canonical_form_means_what_the_text_means(block):
    for seed in range(block * PER_CASE, (block + 1) * PER_CASE):
        text = random_text(Random(f"exhaustive {seed}"))
        assert changed_meaning(text) is None, text
