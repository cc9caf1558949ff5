"""The tables of the specification say what the code says."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from optimist.core.options.engine import DELTA_PREFIX, EngineOptions
from optimist.core.protocol.features import FEATURES, Enablement
from optimist.core.protocol.properties import PROPERTIES
from optimist.core.transaction.conflicts.operations import DATA_CHANGING
from optimist.core.transaction.conflicts.table import CONFLICT_TABLE

pytestmark = pytest.mark.sample(1)

SPEC = Path(__file__).parent.parent / "docs" / "spec"


def cells_of(page, section, width):
    """The lines of a section's table by what their first cells name, without the table's head."""
    text = (SPEC / page).read_text().split(f"\n## {section} ", 1)[1].split("\n## ", 1)[0]
    found = {}
    for line in re.findall(r"^\| `.*\|$", text, re.MULTILINE):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert len(cells) == width, line
        found[re.match("`([^`]+)`", cells[0]).group(1)] = cells[1:]
    return found


CONFLICTS = next(SPEC.glob("02-*.md")).read_text()
FEATURE_ROWS = cells_of("06-features.md", "6.2", 7)
PROPERTY_ROWS = cells_of("07-properties.md", "7.1", 4)
CONF_ROWS = cells_of("07-properties.md", "7.2", 3)


@pytest.mark.parametrize("rule", CONFLICT_TABLE, ids=lambda rule: rule.name)
def test_the_section_of_a_conflict_rule_is_about_it(rule):
    headings = re.findall(r"^## (2\.[0-9]+) (?:Checks? .*?: )?(.*)$", CONFLICTS, re.MULTILINE)
    about = dict(headings)[rule.section].lower()
    assert any(word.rstrip("s") in about for word in rule.name.split() if len(word) > 2)


def test_conflict_rules_stand_in_the_order_of_the_specification():
    sections = [int(rule.section.partition(".")[2]) for rule in CONFLICT_TABLE]
    last_of_files_read = max(at for at, section in enumerate(sections) if section == 9)
    assert sections.pop(last_of_files_read + 1) == 12, "rows come after whole files (box of 2.2)"
    assert sections == sorted(sections)


def test_every_feature_that_the_engine_knows_is_specified():
    assert FEATURE_ROWS.keys() == FEATURES.keys()


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_is_specified_as_it_is_built(name):
    feature = FEATURES[name]
    kind, legacy, requires, _, added, here = FEATURE_ROWS[name]
    assert kind == ("RW" if feature.reader_writer else "W")
    versions = (("reader", feature.legacy_reader), ("writer", feature.legacy_writer))
    assert legacy == ", ".join(f"{side} {number}" for side, number in versions if number)
    assert requires == ", ".join(feature.requires)
    assert (added == "yes") == (feature.enablement is Enablement.AUTOMATIC)
    if feature.reader_writer:
        able = [word for word, can in (("read", feature.can_read), ("written", feature.can_write))
                if can]  # fmt: skip
        assert here == (", ".join(able) or "no")
    else:
        assert here == ("written" if feature.can_write else "not written")


def test_every_property_that_the_engine_knows_is_specified():
    unknown = {name for name, cells in PROPERTY_ROWS.items() if cells[2] == "unknown"}
    assert PROPERTY_ROWS.keys() - unknown - {"delta.constraints.<name>"} == PROPERTIES.keys()
    assert not unknown & PROPERTIES.keys()


OTHER_DEFAULTS = {  # what the reference or the protocol has, and the engine has not
    "delta.checkpoint.writeStatsAsStruct": "**true** (code), false (PROTOCOL)",
    "delta.parquet.compression.codec": "PROTOCOL recommends zstd",
    "delta.dataSkippingStringPrefixLength": "unset: the session's (32)",
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_the_default_of_a_property_is_specified(name):
    row, text = PROPERTIES[name], PROPERTY_ROWS[name][0]
    if name in OTHER_DEFAULTS:
        assert text == OTHER_DEFAULTS[name]
    elif text == "unset":
        assert row.default in (None, False)
    else:
        assert row.kind.parse(text) == row.default


def keys_of_the_engine():
    """Each key of Delta's that the engine looks at, as the table writes it, with its option."""
    found = {}
    for item in dataclasses.fields(EngineOptions):
        for key in item.metadata.get("keys", ()):
            if key.startswith("spark.databricks."):
                found[key.removeprefix(DELTA_PREFIX)] = item
    return found


def test_the_confs_that_the_engine_looks_at_are_marked_in_the_specification():
    text = (SPEC / "07-properties.md").read_text()
    box = text.split("\n## 7.2 ", 1)[1].split("> **Here:**", 1)[1]
    besides = set(re.findall(r"`([A-Za-z.]+)` \((?:true|false)\)", box))
    marked = {name for name, cells in CONF_ROWS.items() if cells[1] == "yes"}
    assert marked | besides == keys_of_the_engine().keys()


@pytest.mark.parametrize("name", [name for name, cells in CONF_ROWS.items() if cells[1] == "yes"])
def test_the_default_of_a_conf_is_specified(name):
    item, text = keys_of_the_engine()[name], CONF_ROWS[name][0]
    default = re.match(r"[A-Za-z0-9.]+", text).group()
    if default == "unset":
        said = re.search(r"\((\w+)\)", text)
        assert item.default is None or (said and item.default == said.group(1))
    else:
        assert item.metadata["parse"](default) == item.default


def test_the_operations_that_change_data_are_those_with_a_star():
    text = (SPEC / "08-operations.md").read_text()
    assert set(re.findall(r"^\| `([^`]+)`\* \|", text, re.MULTILINE)) == DATA_CHANGING
