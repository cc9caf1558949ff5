"""What a notebook shows of a value: true figures, escaped, without a read, and never an error."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from optimist.core import DeltaLog, Operation
from optimist.core.errors import ConcurrentDeleteReadException, StorageError
from optimist.core.errors.html_repr import field_html
from optimist.deltalake import DeltaTable
from optimist.logstores import LocalLogStore

VECTORS = {"spark.databricks.delta.properties.defaults.enableDeletionVectors": "true"}
EVIL = "<img src=x onerror=alert(1)>"


class Balanced(HTMLParser):
    """The open elements of HTML, and the names of all."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def html_of(value: Any) -> str:
    found = value._repr_html_()
    assert found is not None
    page = Balanced(found)
    assert page.open == []
    assert page.tags <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    return found


def facts_of(value: Any) -> dict[str, str]:
    return dict(re.findall(r"<th[^>]*>([^<]*)</th><td[^>]*>([^<]*)</td>", html_of(value)))


def test_a_handle_and_a_version_show_true_figures(tmp_path: Path) -> None:
    log = DeltaLog.for_path(str(tmp_path / "t"), VECTORS)
    assert log._repr_html_() is None
    log.append(pa.table({"id": list(range(1234)), "p": ["a"] * 1234}), partition_by=["p"])
    log.delete("id < 4")
    expected = {"version": "1", "files": "1", "rows": "1,230", "partitioned by": "p"}
    for value in (log, log.snapshot(), DeltaTable(str(tmp_path / "t"))):
        facts = facts_of(value)
        assert {name: facts[name] for name in expected} == expected
        assert (facts["last commit"], facts["writer"][:9]) == ("DELETE", "Optimist/")
        assert "<td style" in html_of(value)
    older = facts_of(log.snapshot(0))
    assert (older["rows"], older["last commit"]) == ("1,234", "WRITE")


def test_results_show_their_fields_and_rows(tmp_path: Path) -> None:
    log = DeltaLog.for_path(str(tmp_path / "t"))
    done = log.append(pa.table({"id": [1, 2, 3]}))
    assert facts_of(done)["version"] == "0"
    assert facts_of(log.delete("id = 1"))["num_deleted"] == "1"
    assert facts_of(log.detail())["size_in_bytes"].endswith(" bytes)")
    assert facts_of(log.scan("id = 2", limit=5))["only where"] == "id = 2"
    assert set(facts_of(next(iter(log.follow())))) == {"version", "position", "num_files"}
    for value in (log.optimize(), log.vacuum(dry_run=True), log.fsck(), log.restore(0)):
        html_of(value)
    rows = html_of(log.sql("DESCRIBE HISTORY this"))
    assert rows.count("<tr>") == 4 + log.version()
    assert "DELETE" in rows


def test_no_password_is_shown_where_a_fact_is_cut() -> None:
    source = f"s3://key:{'pa55word' * 10}@bucket/{'y' * 400}"
    page = field_html(Operation("CLONE", {"note": "x" * 280, "source": source}))
    assert page is not None
    assert "s3://" in page
    assert "pa55" not in page


def test_an_error_of_conflict_says_who_won_and_what_to_do(tmp_path: Path) -> None:
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.append(pa.table({"id": [1, 2, 3]}))
    slow = log.start_transaction()
    slow.filter_files("id = 2")
    log.delete("id = 2")
    with pytest.raises(ConcurrentDeleteReadException) as caught:
        slow.commit([], Operation("MANUAL UPDATE", {}))
    facts = facts_of(caught.value)
    assert (facts["winner"], facts["operation"]) == ("version 1", "DELETE")
    assert facts["what to do"] == caught.value.conflict.remedy


def test_no_name_becomes_html(tmp_path: Path) -> None:
    log = DeltaLog.for_path(str(tmp_path / EVIL))
    columns = {EVIL: "string"}
    log.create(columns, properties={"delta.columnMapping.mode": "name"}, name=EVIL)
    done = log.append(pa.table({EVIL: [EVIL]}), user_metadata=EVIL)
    found = [done, log, log.snapshot(), log.scan(f"`{EVIL}` = '{EVIL}'"), log.detail()]
    for value in (*found, log.sql("DESCRIBE HISTORY this"), log.fsck()):
        html_of(value)
    assert "alert(1)" in html_of(log)


def test_a_notebook_costs_no_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "t")
    properties = {"delta.enableInCommitTimestamps": "true"}
    log = DeltaLog.for_path(path)
    log.create({"id": "int"}, properties=properties)
    log.append(pa.table({"id": pa.array([1], pa.int32())}))
    log.checkpoint()
    (tmp_path / "t" / "_delta_log" / f"{1:020}.crc").unlink()
    store = LocalLogStore()
    fresh = DeltaLog(path, store)
    snapshot, scan = fresh.snapshot(), fresh.scan()

    def closed(*args: Any, **kwargs: Any) -> Any:
        raise StorageError("the store is closed", kind="OPTIMIST_STORAGE_ERROR")

    for name in ("read_bytes", "open_read", "list_from", "put_if_absent", "data_access"):
        monkeypatch.setattr(LocalLogStore, name, closed)
    assert facts_of(snapshot)["files"] == "not read yet"
    assert "time" not in facts_of(fresh)
    assert facts_of(scan)["version"] == "1"
    snapshot.metadata = None  # whatever fails, the short form is left
    del snapshot.schema
    assert snapshot._repr_html_() is None
    assert repr(snapshot).startswith("Snapshot(")
