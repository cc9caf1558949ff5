"""Entries that others put into an arbiter's database, and what must become of them, as a suite.

    class TestHostileEntriesInMine(HostileEntriesSuite):
        @pytest.fixture
        def database(self):
            return InMine()

Whoever can write there must gain nothing beyond the log: no file read, made or deleted elsewhere.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

import pytest

from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.log.names import commit_name
from optimist.core.plugins.arbiter import Arbiter
from optimist.locks.redis_server import key_of
from optimist.logstores.local.store import LocalLogStore
from optimist.logstores.shared.external_arbiter import ExternalArbiterLogStore

__all__ = [
    "DAMAGED",
    "HOSTILE",
    "NAME",
    "SECRET",
    "UUID",
    "Database",
    "HostileEntriesSuite",
    "InDynamoDB",
    "InRedis",
    "staged_path",
]

DAMAGED = "OPTIMIST_ARBITER_ENTRY_DAMAGED"
NAME = commit_name(1)
SECRET = b'{"commitInfo":{"operation":"SECRET"}}\n'
UUID = "0e5a3c1e-1f5b-4c6e-9a50-0d6f8d1c2b3a"
HOSTILE = [
    "../../../secret",
    "../secret",
    "../../secret",
    ".tmp/../../../secret",
    ".tmp/secret",
    f".tmp/{NAME}",
    f".tmp/{NAME}.",
    f".tmp/{NAME}.x/../../../secret",
    f".tmp/{NAME}.x/secret",
    f".tmp/{NAME}.{UUID}\n",
    f".tmp/{NAME}.{UUID}\x00",
    f".tmp/{NAME}.{'a' * 65}",
    f".tmp//{NAME}.{UUID}",
    f"./.tmp/{NAME}.{UUID}",
    f".tmp/{commit_name(2)}.{UUID}",
    f".tmp/{commit_name(2)}.{UUID}/../{NAME}.{UUID}",
    f"_commit_{UUID}.json",
    "_commit_../../x.json.tmp",
    commit_name(0),
    "",
    ".",
    "/etc/passwd",
    "file:///etc/passwd",
    "file:%2F%2F%2Fetc%2Fpasswd",
    "%2e%2e/%2e%2e/%2e%2e/secret",
    f".tmp/%2e%2e%2f{NAME}.{UUID}",
    "s3://elsewhere/secret",
    "reference://k::file:///etc/passwd",
    "..\\..\\secret",
]
"""Staged paths that no writer makes for version 1."""
ODD_NAMES = [
    "zzz",
    "../zzz",
    "../../../zzz.json",
    "%2e%2e%2fzzz.json",
    "00000000000000000001.checkpoint.x/../zzz.parquet",
    "..",
    ".hidden",
    "00000000000000000001.json\n",
    "00000000000000000001.json\x00",
    "9" * 300 + ".json",
    "99999999999999999999.json",
]


class Database(Protocol):
    """An arbiter, and a way to write into its database past it.

    Attributes:
        keeper: How errors call it, at least in part.
        keeps_nul: Whether it stores the character NUL.
    """

    arbiter: Arbiter
    keeper: str
    keeps_nul: bool

    def poke(self, table_path: str, file_name: str, temp_path: str) -> None:
        """Put an incomplete entry of these fields."""


class InRedis:
    """A Redis arbiter, and what others write past it."""

    keeper = "Redis"
    keeps_nul = True

    def __init__(self, arbiter: Arbiter, client: Any, prefix: str) -> None:
        self.arbiter = arbiter
        self.client = client
        self.prefix = prefix

    def poke(self, table_path: str, file_name: str, temp_path: str) -> None:
        fields = {"tempPath": temp_path, "complete": "false"}
        self.poke_text(table_path, file_name, json.dumps(fields))

    def poke_text(self, table_path: str, file_name: str, text: str) -> None:
        """Put any text where an entry belongs."""
        self.client.set(key_of(self.prefix, "arbiter", table_path, "entry", file_name), text)
        self.client.zadd(key_of(self.prefix, "arbiter", table_path, "names"), {file_name: 0})


class InDynamoDB:
    """A DynamoDB arbiter, and what others write past it."""

    keeper = "DynamoDB"
    keeps_nul = True

    def __init__(self, arbiter: Arbiter, client: Any, table_name: str) -> None:
        self.arbiter = arbiter
        self.client = client
        self.table_name = table_name
        arbiter.latest("makes the table")

    def poke(self, table_path: str, file_name: str, temp_path: str) -> None:
        item = {
            "tablePath": table_path,
            "fileName": file_name,
            "tempPath": temp_path,
            "complete": "false",
        }
        texts = {name: {"S": value} for name, value in item.items()}
        self.client.put_item(TableName=self.table_name, Item=texts)


class HostileEntriesSuite:
    """Subclass it with a fixture `database`; each test gets a table of its own on the disk."""

    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        """A table with version 0, and beside it what its log must never reach."""
        table = tmp_path / "space" / "table"
        (table / "_delta_log" / ".tmp").mkdir(parents=True)
        (table / "_delta_log" / commit_name(0)).write_bytes(b"{}\n")
        for canary in (tmp_path / "secret", table / "secret", table.parent / "secret"):
            canary.write_bytes(SECRET)
        (table / "_delta_log" / ".tmp" / "secret").write_bytes(SECRET)
        return table

    @pytest.fixture
    def store(self, database: Database) -> ExternalArbiterLogStore:
        """A store that asks the database's arbiter."""
        return ExternalArbiterLogStore(store=LocalLogStore(), arbiter=database.arbiter)

    def test_a_staged_path_of_another_form_is_refused_and_nothing_is_touched(
        self, database, store, table, tmp_path
    ):
        log = table / "_delta_log"
        roads = (
            lambda: list(store.list_from(str(log / commit_name(0)))),
            lambda: store.read_bytes(str(log / NAME)),
            lambda: store.open_read(str(log / NAME)),
            lambda: store.put_if_absent(str(log / commit_name(2)), b"{}\n"),
        )
        before = _everything_below(tmp_path)
        for temp_path in _kept(database, HOSTILE):
            database.poke(str(table), NAME, temp_path)
            for road in roads:
                with pytest.raises(StorageError) as caught:
                    road()
                assert caught.value.kind == DAMAGED, temp_path
                assert caught.value.fields["file_name"] == NAME
                assert not caught.value.retryable
                shown = str(caught.value)
                assert str(table) in shown
                assert database.keeper.lower() in shown.lower()
                assert "correct or delete" in shown
            assert _everything_below(tmp_path) == before, temp_path

    def test_who_loses_to_a_hostile_entry_is_told_so(self, database, store, table, tmp_path):
        database.poke(str(table), NAME, "../../../secret")
        before = _everything_below(tmp_path)
        with pytest.raises(StorageError) as caught:
            store.put_if_absent(str(table / "_delta_log" / NAME), b"{}\n")
        assert caught.value.kind == DAMAGED
        after = _everything_below(tmp_path)
        staged = f"space/table/_delta_log/.tmp/{NAME}."
        kept = {path: data for path, data in after.items() if not path.startswith(staged)}
        assert kept == before

    def test_a_name_that_is_no_log_files_is_refused_and_nothing_is_made(
        self, database, store, table, tmp_path
    ):
        before = _everything_below(tmp_path)
        for number, file_name in enumerate(_kept(database, ODD_NAMES)):
            spelled = f"{table.parent}{'/.' * number}/{table.name}"  # to the arbiter another table
            database.poke(spelled, file_name, staged_path(file_name))
            with pytest.raises(StorageError) as caught:
                list(store.list_from(f"{spelled}/_delta_log/{commit_name(0)}"))
            assert caught.value.kind == DAMAGED, file_name
            assert _everything_below(tmp_path) == before, file_name

    @pytest.mark.parametrize("temp_path", [f".tmp/{NAME}.{UUID}", f"_commit_{UUID}.json.tmp"])
    def test_what_delta_and_delta_rs_have_staged_is_finished(
        self, database, store, table, temp_path
    ):
        log = table / "_delta_log"
        (log / temp_path).write_bytes(b'{"commitInfo":{}}\n')
        database.poke(str(table), NAME, temp_path)
        names = [status.name for status in store.list_from(str(log / commit_name(0)))]
        assert NAME in names
        assert (log / NAME).read_bytes() == b'{"commitInfo":{}}\n'
        assert database.arbiter.get(str(table), NAME).complete

    def test_a_commit_without_entry_is_missing_as_ever(self, store, table):
        with pytest.raises(LogFileNotFoundError):
            store.read_bytes(str(table / "_delta_log" / commit_name(7)))


def staged_path(file_name: str) -> str:
    """Where Delta's writers stage this file of the log."""
    return f".tmp/{file_name}.{UUID}"


def _kept(database: Database, texts: list[str]) -> list[str]:
    return [text for text in texts if database.keeps_nul or "\x00" not in text]


def _everything_below(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in directory.rglob("*")
        if not path.name.startswith("entries.db")
    }
