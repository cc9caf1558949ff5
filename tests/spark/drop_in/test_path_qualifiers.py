"""A path before a column, in the expressions of a Spark Connect client's statement."""

from __future__ import annotations

import pytest

from optimist.spark.drop_in.connect.path_qualifiers import with_aliases

ALIASES = {
    ("delta", "/a/t"): "x",
    ("delta", "/b`c"): "y",
    ("db", "t"): "x",
    ("cat", "db", "t"): "x",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("delta.`/a/t`.id = 3", "`x`.id = 3"),
        ("DELTA . `/a/t` . `id` = delta.`/b``c`.s.v", "`x` . `id` = `y`.s.v"),
        ("f(delta.`/a/t`.id) > 'delta.`/a/t`.id'", "f(`x`.id) > 'delta.`/a/t`.id'"),
        ("delta.`/other`.id = 3", "delta.`/other`.id = 3"),
        ("id IN (SELECT id FROM delta.`/a/t`)", "id IN (SELECT id FROM delta.`/a/t`)"),
        ("delta.`/a/t` > 1", "delta.`/a/t` > 1"),
        ("DB.t.id > cat.`db`.t.`id`", "`x`.id > `x`.`id`"),
        ("other.db.t.id > db.t and t.id = 1", "other.db.t.id > db.t and t.id = 1"),
        ("count(db.t.*)", "count(`x`.*)"),
        ("-- delta.`/a/t`.id\nid = 1", "-- delta.`/a/t`.id\nid = 1"),
    ],
)
def test_the_alias_of_a_table_takes_the_place_of_its_path(text, expected):
    assert with_aliases(text, ALIASES) == expected
    assert with_aliases(text, {}) == text
