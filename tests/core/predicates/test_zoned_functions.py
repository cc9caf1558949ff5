"""Functions of times give Spark's answers in each time zone, which are recorded."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from optimist.core.errors import UsageError
from optimist.core.local.values import parse_value
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.values.zone_offsets import zone_offsets
from zoned_times import EXPRESSIONS, ZONED_ROWS, ZONES, zoned_answers_here

_RECORD = json.loads(
    gzip.decompress((Path(__file__).parent / "zoned_answers.json.gz").read_bytes())
)


@pytest.mark.sample(2)
@pytest.mark.parametrize("zone", ZONES)
def test_expressions_of_times_have_the_values_of_spark_in_a_zone(zone):
    assert list(_RECORD[zone]) == list(EXPRESSIONS)
    wrong = []
    for sql, (_, expected) in _RECORD[zone].items():
        _, found = zoned_answers_here(sql, zone)
        pairs = enumerate(zip(found, expected, strict=True))
        wrong += [(sql, at, *pair) for at, pair in pairs if pair[0] != pair[1]][:3]
    assert wrong == []


@pytest.mark.parametrize("name", [*ZONES[:4], "Asia/Gaza", "Africa/Casablanca"])
def test_the_offsets_of_a_zone_are_those_of_its_rules(name):
    offsets, zone = zone_offsets(name), ZoneInfo(name)
    second = 1_000_000
    near = [start + step for start in offsets.starts[1:].tolist() for step in (-second, 0)]
    instants = np.array([*near, *range(-(10**16), 10**16, 10**14 + 7 * second)], np.int64)
    walls = (instants.astype("M8[us]").tolist(), offsets.wall_times(instants).astype("M8[us]"))
    utc = ZoneInfo("UTC")
    for instant, wall in zip(walls[0], walls[1].tolist(), strict=True):
        assert instant.replace(tzinfo=utc).astimezone(zone).replace(tzinfo=None) == wall
    back = offsets.instants(instants).astype("M8[us]").tolist()
    for wall, instant in zip(walls[0], back, strict=True):
        assert wall.replace(tzinfo=zone).astimezone(utc).replace(tzinfo=None) == instant


@pytest.mark.parametrize("zone", ["Europe/Nowhere", "+25:00", ""])
def test_a_zone_that_there_is_not_is_refused(zone):
    schema = from_arrow_schema(ZONED_ROWS.schema)
    with pytest.raises(UsageError) as raised:
        parse_value("hour(z)", schema, zone=zone).compute(ZONED_ROWS)
    assert raised.value.kind == "OPTIMIST_UNKNOWN_TIME_ZONE"
