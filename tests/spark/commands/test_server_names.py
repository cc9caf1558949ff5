"""What the answer of a Spark Connect server says of names, without a server."""

from __future__ import annotations

from importlib import import_module

import pytest
from pyspark.errors import AnalysisException

from optimist.core.errors import TableError, TableNotFoundError, UsageError
from optimist.core.sql import RowNeeds, path_relations
from optimist.spark.commands.catalog.names import without_location
from optimist.spark.commands.catalog.places import Place, is_below, is_one_place
from optimist.spark.commands.catalog.server_names import server_entries, server_entry
from optimist.spark.drop_in.connect.relations import RelationFrames

DELTA = """Catalog: spark_catalog
Database: db
Table: t
Owner: me
Type: EXTERNAL
Provider: delta
Comment: {comment}
Table Properties: [a=1]
Location: file:/x y/t: 1
Schema: root
"""


class Server:
    """A server that answers SHOW TABLE EXTENDED, and notes what it was asked."""

    rows = ()
    is_strict, version = "false", "4.3.0"
    asked = ()
    drops = 0

    def sql(self, text):
        type(self).asked = (*self.asked, text)
        if type(self).drops:
            type(self).drops -= 1
            raise AnalysisException("it was dropped", errorClass="TABLE_OR_VIEW_NOT_FOUND")
        if "nodb" in text:
            raise AnalysisException("no such database", errorClass="SCHEMA_NOT_FOUND")
        return self

    def collect(self):
        return [
            dict(zip(("namespace", "tableName", "isTemporary", "information"), row, strict=True))
            for row in self.rows
        ]

    @property
    def conf(self):
        return self

    def get(self, key, default=None):
        assert key == "spark.sql.caseSensitive"
        return self.is_strict


def server(*rows, is_strict="false"):
    return type("Served", (Server,), {"rows": rows, "is_strict": is_strict})()


def told(text=DELTA, name="t", namespace="db", is_view=False):
    return (namespace, name, is_view, text.format(comment="text"))


def test_an_entry_says_format_place_and_owner():
    entry = server_entry(server(told()), ("t",))
    assert (entry.kind, entry.provider, entry.owner) == ("EXTERNAL", "delta", "me")
    assert entry.location == "file:/x y/t: 1"
    assert (entry.name, entry.shown_name) == ("`spark_catalog`.`db`.`t`", "spark_catalog.db.t")


def test_the_names_of_a_database_are_asked_about_at_once():
    client = server(told(), told(name="u"), told(name="tou"))
    found = server_entries(client, [("db", "t"), ("u",), ("db", "u"), ("w",), ("a", "b", "c", "d")])
    assert sorted(found) == [("db", "t"), ("db", "u"), ("u",)]
    assert client.asked == (
        "SHOW TABLE EXTENDED IN `db` LIKE 't|u'",
        "SHOW TABLE EXTENDED LIKE 'u|w'",
    )


def test_odd_letters_of_a_name_do_not_become_a_pattern_or_the_end_of_a_text():
    client = server()
    assert server_entries(client, [("a`b", "x'|*.y\n")]) == {}
    assert client.asked == ("SHOW TABLE EXTENDED IN `a``b` LIKE 'x....y.'",)


def test_a_temporary_view_comes_before_a_table_where_the_name_has_one_part():
    client = server(told(), told("Type: VIEW", namespace="", is_view=True))
    assert server_entry(client, ("t",)).kind == "VIEW"
    assert server_entry(client, ("db", "t")).kind == "EXTERNAL"
    assert server_entry(client, ("Session", "t")).kind == "VIEW"


@pytest.mark.parametrize(("is_strict", "finds"), [("false", True), ("true", False)])
def test_the_case_of_a_name_counts_if_the_session_says_so(is_strict, finds):
    client = server(told(), is_strict=is_strict)
    assert (server_entry(client, ("T",)) is not None) is finds
    assert server_entry(client, ("t",)) is not None


def test_a_name_is_not_known_without_its_database_or_in_another_catalog():
    assert server_entry(server(told()), ("nodb", "t")) is None
    other = DELTA.replace("spark_catalog", "lakehouse")
    assert server_entry(server(told(other)), ("t",)) is None
    assert server_entry(server(told(other.split("\n", 1)[1])), ("t",)) is None


def test_another_table_that_is_dropped_at_that_moment_hides_no_name():
    client = server(told())
    type(client).drops = 2
    assert server_entry(client, ("db", "t")).provider == "delta"
    type(client).drops = 100
    with pytest.raises(AnalysisException, match="it was dropped"):
        server_entry(client, ("db", "t"))
    assert len(client.asked) < 10


@pytest.mark.parametrize(
    ("name", "current", "is_unknown"),
    [
        (("t",), "spark_catalog", False),
        (("t",), "lakehouse", True),
        (("db", "t"), "spark_catalog", False),
        (("Lakehouse", "t"), "spark_catalog", True),
        (("db", "t"), "lakehouse", True),
        (("spark_catalog", "db", "t"), "lakehouse", False),
        (("lakehouse", "db", "t"), "spark_catalog", True),
    ],
)
def test_an_error_of_the_server_is_no_answer_about_a_name(name, current, is_unknown):
    class Failing(Server):
        rows = ()

        def sql(self, text):
            if text == "SHOW CATALOGS":
                return type("Catalogs", (), {"collect": lambda _: [{"catalog": "lakehouse"}]})()
            raise AnalysisException("you may not look", errorClass="UNCLASSIFIED")

        @property
        def catalog(self):
            return type("Catalog", (), {"currentCatalog": lambda _: current})()

    if is_unknown:
        assert server_entry(Failing(), name) is None
        return
    with pytest.raises(AnalysisException, match="you may not look"):
        server_entry(Failing(), name)


def test_a_comment_can_not_say_where_a_table_is():
    text = DELTA.format(comment="x\nLocation: file:/other\nProvider: parquet\nType: VIEW")
    with pytest.raises(TableError) as caught:
        server_entry(server(("db", "t", False, text)), ("t",))
    assert caught.value.kind == "OPTIMIST_TABLE_WITHOUT_LOCATION"
    text = DELTA.format(comment="x\nProvider: parquet\nType: VIEW\nCatalog: other")
    entry = server_entry(server(("db", "t", False, text)), ("t",))
    assert (entry.provider, entry.kind) == ("delta", "EXTERNAL")


@pytest.mark.parametrize(
    ("version", "kind"), [("4.0.5", "MANAGED"), ("4.1.2", "MANAGED"), ("4.3.0", "VIEW")]
)
def test_a_table_of_a_database_called_session_is_hidden_by_a_view_as_on_the_server(version, kind):
    text = DELTA.format(comment="x").replace("EXTERNAL", "MANAGED").replace(": db", ": session")
    found = server(("", "t", True, ""), ("session", "t", False, text))
    found.version = version
    assert server_entry(found, ("Session", "t")).kind == kind
    assert server_entry(found, ("spark_catalog", "session", "t")).kind == "MANAGED"


@pytest.mark.parametrize("more", ["more", "\nmore", " x: 1", "|-- x"])
def test_a_location_of_several_lines_is_not_taken_for_that_of_its_first_line(more):
    text = DELTA.format(comment="x").replace("/t: 1", f"/t: 1\n{more}")
    with pytest.raises(TableError) as caught:
        server_entry(server(("db", "t", False, text)), ("t",))
    assert caught.value.kind == "OPTIMIST_TABLE_WITHOUT_LOCATION"


@pytest.mark.parametrize("more", ["Serde Library: x", "Serde Library:", "Schema: root\n |-- x: y"])
def test_a_location_ends_where_another_fact_begins(more):
    text = DELTA.format(comment="x").replace("Schema: root\n", more)
    assert server_entry(server(("db", "t", False, text)), ("t",)).location == "file:/x y/t: 1"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("/a/b", "file:/a/b/", True),
        ("file:/a//b", "file:///a/b", True),
        ("s3://x/a", "s3://y/a", False),
        ("s3://x/a", "s3a://x/a", False),
        ("/a/b", "/a/B", False),
        ("/a b/c%20", "file:/a b/c%20", True),
        ("hdfs://h:1/a", "/a", True),
    ],
)
def test_two_paths_are_one_place(one, other, same):
    assert is_one_place(one, other) is is_one_place(other, one) is same


@pytest.mark.parametrize(
    ("path", "directory", "is_in"),
    [
        ("file:///a/b/p=1/x", "file:/a/b", True),
        ("/a/b/x", "file:/a/b/", True),
        ("file:/a/bc/x", "file:/a/b", False),
        ("file:/a/b", "file:/a/b", False),
        ("s3://x/a/b/c", "s3://y/a/b", False),
        ("s3://x/a/b c/c%20", "s3://x/a/b c", True),
    ],
)
def test_a_path_is_below_a_directory(path, directory, is_in):
    assert is_below(path, directory) is is_in


def test_the_place_of_an_entry_is_that_of_a_delta_table():
    place = Place.of_entry("`t`", "MANAGED", "Delta", "file:/t", "/t")
    assert (place.path, place.is_managed, place.is_new_name) == ("file:/t", True, False)
    for kind, provider, location, error in (
        ("VIEW", None, None, "DELTA_NOT_A_DELTA_TABLE"),
        ("MANAGED", "parquet", None, "DELTA_NOT_A_DELTA_TABLE"),
        ("EXTERNAL", "delta", "/u", "DELTA_TABLE_LOCATION_MISMATCH"),
    ):
        with pytest.raises(UsageError) as caught:
            Place.of_entry("`t`", kind, provider, "file:/t", location)
        assert caught.value.kind == error
    with pytest.raises(TableError) as lost:
        Place.of_entry("`t`", "MANAGED", "delta", None, None)
    assert lost.value.kind == without_location("t").kind


@pytest.mark.parametrize("place", ["/t@v1", "file:/t/p=1/", "/t@20261120103000000", "/t/p=1@v1"])
def test_the_place_of_an_entry_is_no_version_and_no_partition_of_another_table(monkeypatch, place):
    class Log:
        def __init__(self, _, path, *options):
            self.path = path

        def table_exists(self):
            return self.path in ("/t", "file:/t")

        def snapshot(self, *version, **more):
            if self.table_exists():
                pytest.fail(f"another table was opened: {self.path}")
            raise TableNotFoundError("it is gone", kind="DELTA_TABLE_NOT_FOUND")

    monkeypatch.setattr(import_module("optimist.spark.commands.reading.read"), "open_log", Log)
    (relation,) = path_relations("SELECT * FROM db.t", None, {("db", "t"): place}.get)
    with pytest.raises(TableNotFoundError, match=r"Delta table db.t doesn't exist. it is gone"):
        RelationFrames(None, None).frame(relation, RowNeeds())
