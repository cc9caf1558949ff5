"""What names in one statement of a Spark Connect client mean, without a server."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException

from optimist.core.errors import UsageError
from optimist.core.sql import TableName, path_relations
from optimist.spark.commands.catalog.server_names import ServerEntry
from optimist.spark.commands.catalog.server_views import ServerView
from optimist.spark.drop_in.connect import statement_names
from optimist.spark.drop_in.connect.statement_names import StatementNames, is_free_name, saved_table
from optimist.spark.drop_in.connect.writers import WRITER

ENTRIES = {
    ("t",): ("db", "t", "delta"),
    ("spark_catalog", "lake", "t"): ("lake", "t", "delta"),
    ("db", "T"): ("db", "t", "DELTA"),
    ("pq",): ("db", "pq", "parquet"),
    ("spark_catalog", "db", "t"): ("db", "t", "delta"),
    ("spark_catalog", "db", "pq"): ("db", "pq", "parquet"),
}
VIEWS = {
    "direct": "SELECT t.id, pq.id FROM t JOIN pq",
    "twice": "SELECT * FROM direct, lake.direct",
    "at_path": "SELECT * FROM delta.`/p`",
    "of_files": "SELECT * FROM pq, range(3)",
    "of_nothing": "SELECT * FROM hidden JOIN t",
    "one": "SELECT * FROM other",
    "other": "SELECT * FROM one",
    "broken": "SELECT 'it FROM t",
}


@pytest.fixture
def names(monkeypatch):
    asked = []

    def server_entries(_, wanted):
        wanted = set(wanted)
        asked.append(wanted)
        views = {
            name: ServerEntry(("spark_catalog", "db", name[-1]), "VIEW")
            for name in wanted
            if name[-1] in VIEWS and name[:-1] != ("lake",)
        }
        return views | {
            name: ServerEntry(("spark_catalog", *known[:2]), "MANAGED", known[2], f"/{known[1]}")
            for name in wanted
            if (known := ENTRIES.get(name)) is not None
        }

    def server_view(_, name):
        within = ("spark_catalog", "db")
        return ServerView(name, VIEWS[name[-1]], within, (), (), "COMPENSATION", {})

    monkeypatch.setattr(statement_names, "server_entries", server_entries)
    monkeypatch.setattr(statement_names, "server_view", server_view)
    found = StatementNames(None)
    found.asked = asked
    return found


def test_a_name_is_asked_about_once(names):
    names.learn([("t",), ("pq",)])
    names.learn([("t",), ("nothing",)])
    assert names.known(TableName(("t",))).location == "/t"
    assert names.known(TableName(("pq",))) is None
    assert names.asked == [{("t",), ("pq",)}, {("nothing",)}]
    assert names.known(TableName(("delta", "/p"))).path == "/p"
    assert names.asked == [{("t",), ("pq",)}, {("nothing",)}]


def test_a_column_may_have_the_end_of_its_tables_name_before_it(names):
    names.learn([("t",)])
    assert names.place_of(("DB", "t")) == names.place_of(("spark_catalog", "db", "T")) == "/t"
    assert names.place_of(("other", "t")) is None
    assert names.place_of(("T",)) is None


def test_a_table_of_another_catalog_is_not_the_one_of_a_database_of_its_name(names):
    names.learn([("lake", "t"), ("spark_catalog", "lake", "t")])
    assert names.place_of(("lake", "t")) is None
    assert names.place_of(("spark_catalog", "lake", "t")) == "/t"


def test_a_view_that_reads_delta_tables_knows_its_names_in_its_own_database(names):
    names.learn([("direct",), ("of_files",), ("broken",)])
    assert names.view(("of_files",)) is names.view(("broken",)) is None
    opened = names.view(("direct",))
    table, other = (
        relation
        for relation in path_relations(opened.view.text, None, opened.names.place_of)
        if not relation.is_qualifier
    )
    assert table.path == "/t"
    assert opened.names.full_name(table) is opened.names.view_of(table) is None
    assert opened.names.full_name(other) == ("spark_catalog", "db", "pq")
    assert [entry.location for entry in names.tables()] == ["/t"]


def test_a_name_that_is_gone_is_not_the_temporary_view_of_that_name(names):
    opened = names.view(("of_nothing",))
    gone, _ = path_relations(opened.view.text, None, opened.names.place_of)
    assert opened.names.full_name(gone) == ("spark_catalog", "db", "hidden")


def test_a_view_of_views_and_a_view_of_a_path_read_delta_tables(names):
    assert names.view(("at_path",)) is not None
    inner = names.view(("twice",)).names
    direct, other = path_relations("SELECT * FROM direct, lake.direct", None, inner.place_of)
    assert inner.view_of(direct).view.name == ("spark_catalog", "db", "direct")
    assert inner.full_name(other) == ("lake", "direct")


def test_views_that_read_each_other_are_an_error_and_no_endless_loop(names):
    with pytest.raises(AnalysisException, match="reads itself"):
        names.learn([("one",)])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT * FROM direct VERSION AS OF 1", "no versions"),
        ("SELECT * FROM table_changes('direct', 1)", "not a Delta table"),
    ],
)
def test_a_view_has_no_versions_and_no_changes(names, text, problem):
    names.learn([("direct",)])
    (relation,) = path_relations(text, None, names.place_of)
    with pytest.raises((AnalysisException, UsageError), match=problem):
        names.view_of(relation)


def test_a_temporary_view_does_not_hide_the_table_of_save_as_table(names):
    catalog = type("Catalog", (), {"currentDatabase": lambda _: "db"})()
    spark = type("Session", (), {"catalog": catalog})()
    table = saved_table(spark, "T")
    assert (table.parts, table.location) == (("db", "T"), "/t")
    assert saved_table(spark, "t").parts == ("t",)
    assert saved_table(spark, "pq") is saved_table(spark, "other.t") is None


def test_a_name_that_a_view_has_is_not_free(monkeypatch):
    entries = {("v",): ServerEntry(("v",), "VIEW"), ("t",): ServerEntry(("c", "db", "t"), "VIEW")}
    monkeypatch.setattr(statement_names, "server_entry", lambda _, name: entries.get(name))
    assert not is_free_name(None, "v")
    assert not is_free_name(None, "t")
    assert is_free_name(None, "new")


@pytest.mark.parametrize(
    ("provider", "is_made"), [("delta", True), ("Delta", True), ("parquet", False), (None, True)]
)
def test_a_table_is_made_of_the_format_that_is_asked_for(names, monkeypatch, provider, is_made):
    conf = type("Conf", (), {"get": lambda _, key: {"spark.sql.sources.default": "delta"}[key]})()
    monkeypatch.setattr(names, "_spark", type("Session", (), {"conf": conf})())
    table = TableName(("new",))
    assert names.made(table, lambda: provider) == (table if is_made else None)
    assert names.has_delta is False


@pytest.mark.parametrize("mode", ["overwrite", "OVERWRITE", "Append"])
def test_a_mode_in_any_case_does_not_let_the_server_drop_a_table(names, mode):
    sent = []
    write = SimpleNamespace(source="PARQUET", mode=None, options={})
    writer = SimpleNamespace(_spark=None, _write=write)
    with pytest.raises((AnalysisException, UsageError), match=r"format\(\"delta\"\)"):
        WRITER["saveAsTable"](lambda *args: sent.append(args), writer, "t", mode=mode)
    write.mode = mode
    with pytest.raises((AnalysisException, UsageError), match=r"format\(\"delta\"\)"):
        WRITER["saveAsTable"](lambda *args: sent.append(args), writer, "t")
    assert sent == []
    WRITER["saveAsTable"](lambda *args: sent.append(args), writer, "t", mode="ErrorIfExists")
    assert len(sent) == 1
