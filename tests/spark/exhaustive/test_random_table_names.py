"""What a name in a command on a table of the catalog means is what it means in Spark's queries."""

from __future__ import annotations

import random  # noqa: TID251 - the seed is the spelling: the same changes each time

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from exhaustive_cases import in_proportion
from names_of_tables import BY, COMMANDS, DATABASES, NAMES, Layout, Use, failures
from spelled_tables import CATALOG_SPELLINGS, changes_by
from spelled_tables import failures as failures_of_changes


@st.composite
def cases(draw):
    """Names that are drawn from few, so that many are alike, and their uses."""
    names = st.sampled_from(NAMES)
    apart = st.tuples(names, names, names).filter(lambda x: x[0].lower() != x[1].lower())
    layout = Layout(
        draw(st.sampled_from(("t", "a"))), draw(st.sampled_from(DATABASES)), draw(apart),
        draw(apart), draw(st.none() | names), draw(st.booleans()),
    )  # fmt: skip
    return layout, draw(st.lists(uses(layout), min_size=4, max_size=8))


@st.composite
def uses(draw, layout):
    own, other = layout.parts, ("spark_catalog", "mall", layout.table)
    above = [(), *(own[at:] for at in range(3)), *(other[at:] for at in range(2))]
    above += [] if layout.alias is None else [(layout.alias,)]
    plain, struct, field = draw(st.sampled_from((layout.columns, layout.others)))
    name = draw(st.sampled_from(above)) + draw(st.sampled_from([(plain,), (struct, field)]))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(name) - 1))
        name = (*name[:at], name[at].swapcase(), *name[at + 1 :])
    drawn = (draw(st.integers(0, 3)), draw(st.sampled_from(COMMANDS)), draw(st.sampled_from(BY)))
    return Use(name, *drawn)


@pytest.mark.parametrize("local_bytes", ["0", "1000000"])
def test_a_name_in_a_command_is_that_of_a_query(enabled, conf, tmp_path_factory, local_bytes):
    conf("spark.optimist.spark.driverShortcut.maxBytes", local_bytes)

    @settings(
        max_examples=in_proportion(100),
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes minutes
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def hold(case):
        assert failures(enabled, tmp_path_factory.mktemp("named"), *case) == []

    hold()


@pytest.mark.parametrize("spelling", CATALOG_SPELLINGS)
def test_what_a_spelling_of_a_table_changes(enabled, tmp_path, spelling):
    """A version, a partition or a view in a name is heeded, or else the change is refused."""
    changes = changes_by(spelling)
    random.Random(spelling).shuffle(changes)
    assert failures_of_changes(enabled, tmp_path, spelling, changes[: in_proportion(50)]) == []
