"""Offsets of streams, byte for byte as Delta writes them (spec 11.1)."""

import pytest

from optimist.core.errors import TableError
from optimist.core.streams.offset import BASE_INDEX, StreamOffset

TEXT = (
    '{"sourceVersion":1,"reservoirId":"de65","reservoirVersion":2,'
    '"index":%s,"isStartingVersion":%s}'
)


@pytest.mark.parametrize(
    ("offset", "text"),
    [
        (StreamOffset("de65", 2, 3, True), TEXT % (3, "true")),
        (StreamOffset("de65", 2, 0, False), TEXT % (0, "false")),
        (StreamOffset.before("de65", 2), TEXT % (-1, "false")),
        (StreamOffset("de65", 2, -20, False), (TEXT % (-20, "false")).replace(":1,", ":3,", 1)),
    ],
)
def test_offsets_are_written_and_read_as_delta_has_them(offset, text):
    assert offset.to_json() == text
    assert StreamOffset.from_json(text) == offset
    spaced = text.replace(",", ", ").replace(":", ": ")
    assert StreamOffset.from_json(spaced) == offset


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        ("7", "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        ("{}", "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (TEXT % ('"0"', "true"), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (TEXT % (-7, "true"), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (TEXT % (2**63 - 101, "true"), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (TEXT % (0, "null"), "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        ((TEXT % (0, "true")).replace(":1,", ":0,", 1), "DELTA_INVALID_SOURCE_VERSION"),
        ((TEXT % (0, "true")).replace(":1,", ":2,", 1), "DELTA_INVALID_SOURCE_VERSION"),
        ((TEXT % (0, "true")).replace(":1,", ":4,", 1), "DELTA_INVALID_SOURCE_VERSION"),
    ],
)
def test_what_is_no_offset_is_refused(text, kind):
    with pytest.raises(TableError) as caught:
        StreamOffset.from_json(text)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("earlier", "later", "is_forward"),
    [
        ((2, 3, True), (2, 4, True), True),
        ((2, 3, True), (3, BASE_INDEX, False), True),
        ((2, 3, False), (2, 2, False), False),
        ((3, 0, False), (2, 5, False), False),
        ((2, 3, False), (2, 4, True), False),
    ],
)
def test_offsets_only_go_forward(earlier, later, is_forward):
    before, after = StreamOffset("t", *earlier), StreamOffset("t", *later)
    if is_forward:
        after.ensure_not_before(before)
        return
    with pytest.raises(TableError) as caught:
        after.ensure_not_before(before)
    assert caught.value.kind == "OPTIMIST_STREAM_WENT_BACK"
