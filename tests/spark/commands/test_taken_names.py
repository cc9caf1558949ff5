"""Clients of one server who make a table of the same name, in the orders that matter.

The server's catalog is one in memory here; the tables are real.
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException

from optimist.core import DeltaLog
from optimist.core.commands.create.create import create_table
from optimist.core.requests.table_definition import CreateMode, TableDefinition, columns_of
from optimist.core.schema.types import StructField, StructType
from optimist.spark.commands.catalog import server_entries
from optimist.spark.commands.catalog.named_tables import complete_for_place
from optimist.spark.commands.catalog.server_entries import named_place
from optimist.spark.commands.catalog.server_names import ServerEntry

NAME = "`spark_catalog`.`db`.`t`"
DEFINITION = TableDefinition(columns=columns_of(StructType((StructField("id", "long"),))))


class Catalog:
    """A catalog that keeps the files of a table whose place it chose, as Spark's does.

    Attributes:
        entries: The entries.
        before: What other clients do right before the next statement of a verb.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: dict[str, ServerEntry] = {}
        self.before = {}

    def run(self, _: object, text: str) -> None:
        verb = text.split()[0]
        self.before.pop(verb, lambda: None)()
        found = re.search(r"LOCATION '(.*)'$", text)
        getattr(self, verb.lower())(found and found[1])

    def create(self, location: str | None) -> None:
        if NAME in self.entries:
            raise AnalysisException("taken", errorClass="TABLE_OR_VIEW_ALREADY_EXISTS")
        place = Path(location or self.folder / "t")
        assert location or not place.exists() or not list(place.iterdir())
        place.mkdir(exist_ok=True)
        kind = "EXTERNAL" if location else "MANAGED"
        parts = ("spark_catalog", "db", "t")
        self.entries[NAME] = ServerEntry(parts, kind, "delta", str(place))

    def alter(self, location: str) -> None:
        entry = self.entries[NAME]
        self.entries[NAME] = ServerEntry(entry.parts, entry.kind, "delta", location)

    def drop(self, _: object = None) -> None:
        entry = self.entries.pop(NAME)
        if entry.kind == "MANAGED":
            shutil.rmtree(entry.location, ignore_errors=True)

    def entry(self, _: object, parts: tuple[str, ...]) -> ServerEntry | None:
        return self.entries.get(".".join(f"`{part}`" for part in parts))


@pytest.fixture
def catalog(tmp_path, monkeypatch):
    made = Catalog(tmp_path)
    monkeypatch.setattr(server_entries, "_run", made.run)
    monkeypatch.setattr(server_entries, "server_entry", made.entry)
    monkeypatch.setattr(server_entries, "open_log", lambda _, path: DeltaLog.for_path(path))
    monkeypatch.setattr(server_entries, "ensure_format_known", lambda _: None)
    return made


SPARK = SimpleNamespace(
    catalog=SimpleNamespace(currentCatalog=lambda: "spark_catalog", currentDatabase=lambda: "db")
)


def make(then=lambda: None):
    """Make the table, and let others do something before the statement ends."""
    with named_place(SPARK, "t", None, CreateMode.CREATE) as place:
        log = DeltaLog.for_path(place.path)
        create_table(log.start_transaction, complete_for_place(place, DEFINITION))
        then()


def fail(first=lambda: None):
    with pytest.raises(ZeroDivisionError), named_place(SPARK, "t", None, CreateMode.CREATE):
        first()
        _ = 1 / 0


def names_table(catalog) -> bool:
    """Whether the name means a table that is there."""
    entry = catalog.entries.get(NAME)
    return entry is not None and DeltaLog.for_path(entry.location).table_exists()


def test_a_name_without_a_table_is_taken_back(catalog):
    fail()
    assert catalog.entries == {}
    make()
    assert names_table(catalog)
    assert catalog.entries[NAME].kind == "MANAGED"


@pytest.mark.parametrize("verb", ["ALTER", "DROP"])
def test_a_table_that_is_made_while_its_name_is_taken_back_keeps_the_name(catalog, verb):
    catalog.before[verb] = lambda: create_table(
        DeltaLog.for_path(str(catalog.folder / "t")).start_transaction, DEFINITION
    )
    fail()
    assert names_table(catalog)


def test_who_takes_a_name_keeps_it_when_its_maker_fails_later(catalog):
    taken = named_place(SPARK, "t", None, CreateMode.CREATE)

    def take():
        place = taken.__enter__()
        assert place.is_managed

    fail(take)
    assert catalog.entries == {}
    create_table(DeltaLog.for_path(str(catalog.folder / "t")).start_transaction, DEFINITION)
    taken.__exit__(None, None, None)
    assert names_table(catalog)


def test_a_name_that_is_dropped_and_made_anew_meanwhile_is_left(catalog):
    def make_anew():
        catalog.drop()
        make()

    catalog.before["ALTER"] = make_anew
    fail()
    assert names_table(catalog)


def test_a_name_that_means_another_place_meanwhile_is_left(catalog):
    def make_elsewhere():
        catalog.drop()
        catalog.create(str(catalog.folder / "elsewhere"))

    fail(make_elsewhere)
    assert catalog.entries[NAME].location == str(catalog.folder / "elsewhere")


def test_two_clients_name_the_same_table_again(catalog):
    def take_back():
        catalog.drop()
        create_table(DeltaLog.for_path(str(catalog.folder / "t")).start_transaction, DEFINITION)
        catalog.before["CREATE"] = lambda: catalog.create(str(catalog.folder / "t"))

    with named_place(SPARK, "t", None, CreateMode.CREATE):
        take_back()
    assert names_table(catalog)


def test_a_table_that_is_dropped_at_once_stays_dropped(catalog):
    make(catalog.drop)
    assert catalog.entries == {}
    with suppress(FileNotFoundError):
        assert list((catalog.folder / "t").iterdir()) == []
