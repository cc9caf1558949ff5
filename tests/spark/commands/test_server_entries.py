"""How a client makes entries in the catalog of a Spark Connect server, without a server."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest

from optimist.core.errors import SchemaError, UsageError
from optimist.core.requests.table_definition import CreateMode
from optimist.core.schema.types import StructField, StructType
from optimist.core.sql import TableName
from optimist.spark.arrow.source import register_source
from optimist.spark.commands.catalog import relocation, server_entries
from optimist.spark.commands.catalog.server_entries import move_entry, named_place
from optimist.spark.commands.catalog.server_names import ServerEntry
from optimist.spark.commands.catalog.server_source import ensure_format_known

_LONG = StructType((StructField("id", "long"),))
TABLES = {"file:/t": _LONG, "/same": _LONG, "/other": StructType((StructField("id", "string"),))}
PARTS = ("spark_catalog", "db", "t")


class Catalog:
    """The entries of a server, by their names, and the statements that it was sent."""

    def __init__(self):
        self.entries = {PARTS: ServerEntry(PARTS, "MANAGED", "delta", "file:/it's/t")}
        self.tables, self.sent = set(), []

    def currentCatalog(self):
        return "SPARK_CATALOG"

    def currentDatabase(self):
        return "db"

    def entry(self, _, name):
        return self.entries.get(name)

    def has_no_table(self, _, entry):
        return entry.location is not None and entry.location not in self.tables

    def open_log(self, _, place):
        whole = SimpleNamespace(findings=pa.table({"kind": pa.array([], pa.string())}))
        return SimpleNamespace(table_exists=lambda: place in self.tables, fsck=lambda: whole)

    def run(self, _, text):
        self.sent.append(text)


@pytest.fixture
def catalog(monkeypatch):
    found = Catalog()
    for name, fake in (
        ("server_entry", found.entry),
        ("_has_no_table", found.has_no_table),
        ("open_log", found.open_log),
        ("_run", found.run),
        ("ensure_format_known", lambda _: None),
    ):
        monkeypatch.setattr(server_entries, name, fake)
    return found


def session(catalog):
    conf = SimpleNamespace(get={"spark.sql.catalog.lake": "com.example.Lake"}.get)
    return SimpleNamespace(catalog=catalog, conf=conf)


@pytest.mark.parametrize("mode", [CreateMode.CREATE, CreateMode.CREATE_OR_REPLACE])
def test_a_table_keeps_its_name_if_the_first_maker_of_the_name_takes_it_back(catalog, mode):
    with named_place(session(catalog), "t", None, mode) as place:
        assert (place.path, place.is_managed) == ("file:/it's/t", True)
        catalog.tables.add(place.path)
        catalog.entries.clear()
    assert catalog.sent == [
        "CREATE TABLE `spark_catalog`.`db`.`t` USING delta LOCATION 'file:/it\\'s/t'"
    ]


def test_a_name_that_is_there_is_not_made_again(catalog):
    with named_place(session(catalog), "t", None, CreateMode.CREATE):
        pass
    catalog.tables.add("file:/it's/t")
    catalog.entries[PARTS] = replace(catalog.entries[PARTS], kind="EXTERNAL")
    with named_place(session(catalog), "db.t", None, CreateMode.CREATE_OR_REPLACE):
        catalog.entries.clear()  # another client has dropped the name, and the files stay
    catalog.entries[PARTS] = ServerEntry(PARTS, "VIEW")
    with named_place(session(catalog), "db.t", None, CreateMode.CREATE_IF_NOT_EXISTS) as place:
        assert place is None
    assert catalog.sent == []


@pytest.mark.parametrize("name", ["lake.t", "lake.db.t", "a.b.c.d"])
def test_a_new_table_of_another_catalog_is_none_of_the_database_of_that_name(catalog, name):
    with (
        pytest.raises(UsageError, match="a catalog that Optimist does not know") as caught,
        named_place(session(catalog), name, None, CreateMode.CREATE_OR_REPLACE),
    ):
        pass
    assert (caught.value.kind, catalog.sent) == ("DELTA_NOT_A_DELTA_TABLE", [])


def test_a_client_in_the_memory_of_an_earlier_one_has_no_source_yet(monkeypatch):
    """A server that was restarted has forgotten what a client of the same session registered."""
    registered = []

    class Client:
        pass

    def client():
        source = SimpleNamespace(register=registered.append)
        return SimpleNamespace(client=Client(), session_id="s", dataSource=source)

    monkeypatch.setattr("optimist.spark.session.pyspark_versions.is_connect", lambda _: True)
    for _ in range(100):  # the memory of one is soon that of another
        spark = client()
        for _ in range(2):
            ensure_format_known(spark)
            register_source(spark, {})
        del spark
    assert len(registered) == 200


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_failed_statement_drops_no_name_that_another_client_has_made_anew(
    catalog, monkeypatch, is_made_anew
):
    made = catalog.entries.pop(PARTS)

    def run(_, text):
        catalog.sent.append(text.split()[0])
        if text.startswith("CREATE"):
            catalog.entries[PARTS] = made
        elif text.startswith("ALTER") and not is_made_anew:
            where = text.split("LOCATION ")[1].strip("'").replace("\\'", "'")
            catalog.entries[PARTS] = ServerEntry(PARTS, "MANAGED", "delta", where)

    class Log:
        table = None

        def table_exists(self):
            return False

    monkeypatch.setattr(server_entries, "_run", run)
    monkeypatch.setattr(server_entries, "open_log", lambda *_: Log())
    monkeypatch.setattr(server_entries, "is_left_empty", lambda _: True)
    monkeypatch.setattr(server_entries, "occupied", lambda _: nullcontext())
    failing = named_place(session(catalog), "t", None, CreateMode.CREATE)
    with pytest.raises(ZeroDivisionError), failing:
        raise ZeroDivisionError
    assert catalog.sent == ["CREATE", "ALTER"] + ["DROP"] * (not is_made_anew)


def test_a_name_may_mean_a_table_of_the_same_columns_at_another_place(catalog, monkeypatch):
    class Log:
        def __init__(self, _, path):
            self.path = path

        def table_exists(self):
            return self.path in TABLES

        def snapshot(self):
            return type("Snapshot", (), {"schema": TABLES[self.path]})

    monkeypatch.setattr(relocation, "open_log", Log)
    spark, table = session(catalog), TableName(("t",), location="file:/t")
    move_entry(spark, table, "/same")
    move_entry(spark, replace(table, location="/gone"), "/other")
    assert catalog.sent == [
        f"ALTER TABLE `spark_catalog`.`db`.`t` SET LOCATION '{path}'"
        for path in ("/same", "/other")
    ]
    with pytest.raises(SchemaError, match="has other columns") as caught:
        move_entry(spark, table, "/other")
    assert caught.value.kind == "DELTA_SET_LOCATION_SCHEMA_MISMATCH"
    with pytest.raises(UsageError, match="is named by its path"):
        move_entry(spark, TableName(("delta", "/t")), "/same")
    assert len(catalog.sent) == 2
