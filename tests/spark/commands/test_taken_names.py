"""Clients of one server who make a table of the same name, in the orders that matter.

The server's catalog is one in memory here; the tables are real.
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from pyspark.errors import AnalysisException, SparkRuntimeException

from optimist.core import DeltaLog
from optimist.core.commands.create.create import create_table
from optimist.core.errors import TableNotFoundError, UsageError
from optimist.core.requests.table_definition import CreateMode, TableDefinition, columns_of
from optimist.core.schema.types import StructField, StructType
from optimist.spark.commands.catalog import server_entries
from optimist.spark.commands.catalog.named_tables import complete_for_place
from optimist.spark.commands.catalog.server_entries import (
    ensure_still_named,
    named_place,
)
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
        found = re.search(r"LOCATION '(.*?)'", text)
        getattr(self, verb.lower())(found and found[1])

    def create(self, location: str | None, provider: str = "delta") -> None:
        if NAME in self.entries:
            raise AnalysisException("taken", errorClass="TABLE_OR_VIEW_ALREADY_EXISTS")
        place = Path(location or self.folder / "t")
        if not location and place.exists() and list(place.iterdir()):
            raise SparkRuntimeException(
                "occupied",
                errorClass="LOCATION_ALREADY_EXISTS",
                messageParameters={"location": f"'{place}'"},
            )
        place.mkdir(exist_ok=True)
        kind = "EXTERNAL" if location else "MANAGED"
        parts = ("spark_catalog", "db", "t")
        self.entries[NAME] = ServerEntry(parts, kind, provider, str(place))

    def alter(self, location: str) -> None:
        entry = self.entries[NAME]
        self.entries[NAME] = replace(entry, location=location)

    def drop(self, _: object = None) -> None:
        if NAME not in self.entries:
            raise AnalysisException("unknown", errorClass="TABLE_OR_VIEW_NOT_FOUND")
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
    catalog=SimpleNamespace(
        currentCatalog=lambda: "spark_catalog",
        currentDatabase=lambda: "db",
        getDatabase=lambda _: None,
    )
)


def make(then=lambda: None, *, mode=CreateMode.CREATE, first=lambda: None, location=None):
    """Make the table, and let others do something before it is made, and before the end."""
    with named_place(SPARK, "t", location, mode) as place:
        first()
        log = DeltaLog.for_path(place.path)
        definition = replace(DEFINITION, mode=mode)
        create_table(log.start_transaction, complete_for_place(place, definition))
        then()


def fail(first=lambda: None):
    with pytest.raises(ZeroDivisionError), named_place(SPARK, "t", None, CreateMode.CREATE):
        first()
        _ = 1 / 0


def names_table(catalog) -> bool:
    """Whether the name means a table that is there."""
    entry = catalog.entries.get(NAME)
    return entry is not None and DeltaLog.for_path(entry.location).table_exists()


def test_a_name_without_a_table_is_taken_back_and_its_place_with_it(catalog):
    fail()
    assert catalog.entries == {}
    assert not (catalog.folder / "t").exists()  # the catalog would give no other table the name
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


def test_what_somebody_else_puts_into_the_place_of_a_name_that_is_taken_back_stays(catalog):
    catalog.before["DROP"] = (catalog.folder / "t" / "theirs").touch
    fail()
    assert (catalog.folder / "t" / "theirs").exists()


def test_a_name_that_is_dropped_and_made_anew_meanwhile_is_left(catalog):
    def make_anew():
        catalog.drop()
        make()

    catalog.before["ALTER"] = make_anew
    fail()
    assert names_table(catalog)


@pytest.mark.parametrize("verb", [None, "ALTER"])
def test_a_table_of_another_format_that_takes_the_name_meanwhile_keeps_it(catalog, verb):
    """It has the same place, and no files yet."""

    def make_another():
        catalog.drop()
        catalog.create(None, "parquet")

    if verb is None:
        fail(make_another)
    else:
        catalog.before[verb] = make_another
        fail()
    assert catalog.entries[NAME].provider == "parquet"
    assert catalog.entries[NAME].location == str(catalog.folder / "t")
    assert (catalog.folder / "t").exists()


@pytest.mark.parametrize("mode", [CreateMode.CREATE, CreateMode.CREATE_OR_REPLACE])
def test_no_rows_go_into_a_table_of_another_format_that_takes_the_name(catalog, mode):
    with named_place(SPARK, "t", None, mode) as place:
        catalog.drop()
        catalog.create(None, "parquet")
        with pytest.raises(TableNotFoundError, match="Nothing was committed"):
            ensure_still_named(SPARK, place)
    assert list((catalog.folder / "t").iterdir()) == []


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


@pytest.mark.parametrize("mode", [CreateMode.CREATE, CreateMode.CREATE_OR_REPLACE])
def test_a_table_made_after_its_name_was_dropped_has_the_name_and_keeps_its_files(catalog, mode):
    """The server takes a place with files only as a location; no text in an entry changes that."""
    if mode is CreateMode.CREATE_OR_REPLACE:
        make()
    make(mode=mode, first=catalog.drop)
    assert names_table(catalog)
    assert catalog.entries[NAME].kind == "EXTERNAL"
    place = catalog.entries[NAME].location
    catalog.drop()
    assert DeltaLog.for_path(place).table_exists()
    with pytest.raises(UsageError, match="USING delta LOCATION"):
        make()


def test_rows_are_not_committed_once_the_name_is_dropped(catalog):
    with named_place(SPARK, "t", None, CreateMode.CREATE) as place:
        ensure_still_named(SPARK, place)
        catalog.drop()
        with pytest.raises(TableNotFoundError, match="Nothing was committed"):
            ensure_still_named(SPARK, place)
    ensure_still_named(SPARK, replace(place, is_managed=False))


def test_a_name_that_its_maker_gives_back_is_taken_afterwards(catalog):
    """A client that asks at that moment looks again, until the name is free."""
    asked = []

    def entry(_: object, __: tuple[str, ...]) -> ServerEntry | None:
        asked.append(catalog.entries.get(NAME))
        if len(asked) == 3:
            catalog.drop()  # by its maker
        return asked[-1]

    catalog.create(None)
    catalog.alter(f"{catalog.folder}/t__dropped_{'0' * 32}")
    with patch.object(server_entries, "server_entry", entry):
        make()
    assert catalog.entries[NAME].kind == "MANAGED"


class Killed(BaseException):
    """What a client meets that is killed at a statement."""


@pytest.mark.parametrize("where", [None, "elsewhere"])
@pytest.mark.parametrize("mode", [CreateMode.CREATE, CreateMode.CREATE_OR_REPLACE])
def test_a_name_whose_maker_was_killed_as_it_gave_it_back_is_taken(catalog, mode, where):
    def be_killed():
        raise Killed

    catalog.before["DROP"] = be_killed
    with suppress(Killed):
        fail()
    assert "__dropped_" in catalog.entries[NAME].location
    location = None if where is None else str(catalog.folder / where)
    make(mode=mode, location=location)
    assert names_table(catalog)
    assert catalog.entries[NAME].location == str(catalog.folder / (where or "t"))


def test_a_name_that_was_taken_stays_when_its_maker_was_only_slow(catalog):
    catalog.before["DROP"] = make
    fail()
    assert names_table(catalog)
    assert catalog.entries[NAME].kind == "EXTERNAL"  # so no late DROP removes the files


def test_a_left_name_that_somebody_else_makes_anew_is_theirs(catalog):
    def make_anew():
        catalog.drop()
        make()

    catalog.create(None)
    catalog.alter(f"{catalog.folder}/t__dropped_{'0' * 32}")
    catalog.before["ALTER"] = make_anew
    with pytest.raises(AnalysisException) as caught:
        make()
    assert caught.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert names_table(catalog)


def test_a_name_that_is_taken_at_the_last_moment_is_kept_if_it_may_be_there(catalog):
    catalog.before["CREATE"] = make
    with named_place(SPARK, "t", None, CreateMode.CREATE_IF_NOT_EXISTS) as place:
        assert place is None
    assert DeltaLog.for_path(catalog.entries[NAME].location).snapshot().version == 0


def test_a_name_that_is_taken_at_the_last_moment_is_replaced_if_that_is_asked_for(catalog):
    catalog.before["CREATE"] = make
    make(mode=CreateMode.CREATE_OR_REPLACE)
    assert DeltaLog.for_path(catalog.entries[NAME].location).snapshot().version == 1
    assert catalog.entries[NAME].kind == "MANAGED"


def test_a_name_that_is_taken_at_the_last_moment_is_not_new(catalog):
    catalog.before["CREATE"] = make
    with pytest.raises(AnalysisException) as caught:
        make()
    assert caught.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert names_table(catalog)


@pytest.mark.parametrize("left", ["_optimist_intents", "_delta_log", "p=1/q=2"])
def test_what_a_failed_write_has_left_at_the_place_is_no_obstacle(catalog, left):
    (catalog.folder / "t" / left).mkdir(parents=True)
    make()
    assert catalog.entries[NAME].kind == "MANAGED"


def test_a_table_without_a_name_is_told_and_can_get_the_name(catalog):
    make()
    where = catalog.entries.pop(NAME).location
    with pytest.raises(UsageError, match="If the table has no other name") as caught:
        make()
    assert caught.value.kind == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
    catalog.create(where)
    assert names_table(catalog)


def test_other_files_at_the_place_are_the_servers_error(catalog):
    (catalog.folder / "t" / "p=1").mkdir(parents=True)
    (catalog.folder / "t" / "p=1" / "other").touch()
    with pytest.raises(SparkRuntimeException, match="occupied"):
        make()
