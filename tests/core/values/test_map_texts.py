"""The values of one key in a column of maps, whatever the maps are like."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from optimist.core.log.file_table import STRING_MAP_TYPE
from optimist.core.values.map_texts import values_of_key

MAPS = {
    "none": [],
    "one key": [[("a", "1")], [("a", None)], [("a", "")]],
    "two keys": [[("a", "1"), ("b", "x")], [("a", "2"), ("b", None)], [("a", None), ("b", "é")]],
    "another order": [[("a", "1"), ("b", "x")], [("b", "2"), ("a", "y")]],
    "another key": [[("a", "1")], [("c", "2")], [("a", "3")]],
    "twice": [[("a", "1"), ("a", "2")], [("a", "3"), ("a", "4")]],
    "missing in one": [
        [("a", "1"), ("b", "2")],
        [("b", "3")],
        [("a", "4"), ("b", "5"), ("c", "6")],
    ],
    "as many keys in all": [[("a", "1")], [], [("a", "2"), ("b", "3")]],
    "empty": [[], [], []],
    "null": [[("a", "1")], None, [("a", "2")]],
}


@pytest.mark.parametrize("maps", MAPS.values(), ids=MAPS)
@pytest.mark.parametrize("key", ["a", "b", "z", ""])
@pytest.mark.parametrize("first", [0, 1])
def test_each_map_gives_its_first_value_of_the_key(maps, key, first):
    array = pa.array([[("a", "before")], *maps, [("b", "after")]], STRING_MAP_TYPE)
    array = array.slice(1 - first, len(maps) + first)
    expected = pc.map_lookup(array, key, "first")
    assert values_of_key(array, key).to_pylist() == expected.to_pylist()
    chunks = pa.chunked_array([array, array.slice(1), array.slice(0, 0)], STRING_MAP_TYPE)
    found = values_of_key(chunks, key)
    assert found.type == pa.string()
    assert found.to_pylist() == pc.map_lookup(chunks, key, "first").to_pylist()


def test_texts_of_other_types_of_arrow_become_plain_texts():
    kind = pa.map_(pa.large_string(), pa.large_string())
    array = pa.array([[("a", "1")], [("a", "2")]], kind)
    assert values_of_key(array, "a").equals(pa.array(["1", "2"], pa.string()))
