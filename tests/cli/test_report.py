"""The report of a table: its figures against the log's, what it advises, and a harmless page."""

from __future__ import annotations

import json
import os
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from optimist.cli.report import table_report
from optimist.cli.report.layout import layout_of
from optimist.cli.report.over_time import table_over_time
from optimist.cli.report.sections import layout_section
from optimist.cli.report.texts import bytes_text, plural, share_text, time_text
from optimist.core import DeltaLog

VECTORS = {"spark.databricks.delta.properties.defaults.enableDeletionVectors": "true"}
VOID = {"meta", "br", "img", "link", "input"}


class Elements(HTMLParser):
    """The elements of a page, and the figures in its tables by caption."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.figures: dict[str, list[list[str]]] = {}
        self.open: list[str] = []
        self._caption = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "action")]
        assert not [name for name in given if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr" and "tbody" in self.open:
            self.figures.setdefault(self._caption, []).append([])
        if tag == "td":
            self.figures[self._caption][-1].append(given.get("data-value"))

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "caption":
            self._caption = data


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the charts out, which take nearly all of the time."""
    monkeypatch.setattr("optimist.cli.report.page.drawn", lambda chart: ("", ""))


def busy(path: Path) -> DeltaLog:
    """A table with every kind of change: new files, vectors, copies, and files that come back."""
    log = DeltaLog.for_path(str(path), VECTORS)
    for month in (1, 2, 1):
        rows = pa.table({"month": pa.array([month] * 6, pa.int32()), "delay": list(range(6))})
        log.append(rows, partition_by=("month",))
    log.delete("delay = 1")
    log.delete("delay = 2 AND month = 1")
    log.update(set={"delay": "30"}, predicate="month = 2 AND delay = 3")
    log.optimize()
    log.restore(4)
    log.recompute_statistics()
    log.append(rows)
    return log


def test_the_table_over_time_is_that_of_each_version(tmp_path):
    log = busy(tmp_path / "t")
    steps: list[tuple[int, int | None]] = []
    states = table_over_time(log, log.snapshot(), lambda *step: steps.append(step)).states
    assert states.column("version").to_pylist() == list(range(log.version() + 1))
    for state in states.to_pylist():
        version = log.snapshot(state["version"])
        known = (version.num_files, version.size_in_bytes, version.count_rows())
        assert (state["files"], state["bytes"], state["rows"]) == known
    history = {each.version: each.timestamp_ms for each in log.history()}
    assert states.column("time").to_pylist() == [history[each] for each in sorted(history)]


def test_a_log_that_lost_its_oldest_commits_begins_at_a_checkpoint(tmp_path):
    path = tmp_path / "t"
    log = DeltaLog.for_path(str(path))
    for number in range(4):
        log.append(pa.table({"a": [number] * (number + 1)}))
    log.delete("a = 1")
    log.checkpoint()
    log.delete("a = 2")
    log.append(pa.table({"a": [9]}))
    for version in range(4):
        (path / "_delta_log" / f"{version:020}.json").unlink()
    fresh = DeltaLog(str(path), log.store)
    states = table_over_time(fresh, fresh.snapshot(), lambda *step: None).states
    assert states.column("version").to_pylist() == [5, 6]
    assert states.column("rows").to_pylist() == [5, 6]
    assert states.column("files").to_pylist() == [3 - 1, 3]


def test_rows_are_unknown_while_one_file_does_not_tell_them(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.append(pa.table({"a": [1]}))
    plain = {"spark.databricks.delta.stats.collect": "false"}
    DeltaLog.for_path(str(tmp_path / "t"), plain).append(pa.table({"a": [2]}))
    log.delete("a = 2")
    states = table_over_time(log, log.snapshot(), lambda *step: None).states
    assert states.column("rows").to_pylist() == [1, None, 1]
    assert states.column("files").to_pylist() == [1, 2, 1]


def test_partitions_whose_names_look_alike_are_not_one(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    rows = {"p": ["NULL", None, "1, q=2", "1"], "q": ["2", "2", "3", "2, q=3"], "a": [1, 2, 3, 4]}
    log.append(pa.table(rows), partition_by=("p", "q"))
    version = log.snapshot()
    layout = layout_of(version, version.pruner(), ())
    assert layout.num_partitions == 4
    assert layout.partitions.column("files").to_pylist() == [1, 1, 1, 1]
    chart = layout_section(version, layout).parts[1]
    assert len({bar["name"] for bar in chart.spec["data"]["values"]}) == 4


def test_files_per_value_counts_the_files_whose_range_holds_a_value(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    rng = np.random.default_rng(5)
    bounds = []
    for _ in range(12):
        low = int(rng.integers(0, 20))
        high = low + int(rng.integers(0, 20))
        bounds.append((low, high))
        log.append(pa.table({"a": [low, high], "s": [f"{low:03}", f"{high:03}"]}))
    log.append(pa.table({"a": pa.array([None], pa.int64()), "s": ["000"]}))  # no value at all
    expected = [sum(low <= value <= high for low, high in bounds) for value, _ in bounds]
    version = log.snapshot()
    by_column = {each.column: each for each in layout_of(version, version.pruner(), ()).overlaps}
    assert by_column["a"].files_per_value == pytest.approx(sum(expected) / len(bounds))
    assert (by_column["a"].with_bounds, by_column["s"].with_bounds) == (12, 13)


def test_the_page_has_the_figures_of_the_log(undrawn, tmp_path):
    log = busy(tmp_path / "t")
    query = "month = 2 AND delay >= 0"
    found = table_report(log, [query, "nope = 1"], checks=False)
    page = Elements(found.html)
    assert page.open == []
    (row,) = page.figures["What each query reads"]
    read = log.files(query)
    assert row[1:3] == [str(read.num_rows), str(sum(read["size"].to_pylist()))]
    assert int(row[1]) + int(row[3]) == log.snapshot().num_files
    states = page.figures["The table after some of its commits"]
    newest = log.snapshot()
    assert states[0][0] == str(newest.version)
    assert states[0][2:] == [
        *(str(log.count()), str(newest.size_in_bytes), str(newest.num_files)),
    ]
    sizes = page.figures["Files by size"]
    assert sum(int(row[1]) for row in sizes) == newest.num_files
    assert sum(int(row[2]) for row in sizes) == newest.size_in_bytes
    partitions = page.figures["The largest partitions"]
    assert sum(int(row[2]) for row in partitions) == newest.size_in_bytes
    operations = page.figures["Commits by operation"]
    assert sum(int(row[1]) for row in operations) == newest.version + 1
    assert "DELTA_COLUMN_NOT_FOUND" in found.html


def test_names_that_are_html_harm_nothing(tmp_path):
    evil = "</script><img src=x onerror=alert(1)>"
    log = DeltaLog.for_path(str(tmp_path / "t"))
    properties = {"delta.columnMapping.mode": "name"}
    log.create({evil: "string", "a": "int"}, partition_by=[evil], properties=properties, name=evil)
    log.append(pa.table({evil: [evil, "</svg>"], "a": pa.array([1, 2], pa.int32())}))
    log.alter.set_comment(evil)
    found = table_report(log, [f"`{evil}` = '{evil}'", evil], checks=False)
    page = Elements(found.html)
    assert page.tags & {"script", "img", "iframe", "object", "link", "base", "form"} == set()
    assert [link for link in page.links if not link.startswith("#")] == []
    assert "default-src 'none'" in found.html
    assert "alert(1)" in found.html


def test_it_advises_what_the_commands_would_do(undrawn, tmp_path):
    options = {
        "spark.databricks.delta.optimize.maxFileSize": "2000",
        "spark.databricks.delta.optimize.minFileSize": "2000",
        "spark.databricks.delta.checkpoint.enabled": "false",
    }
    log = DeltaLog.for_path(str(tmp_path / "t"), options)
    for number in range(30):
        log.append(pa.table({"a": [number, 1000 - number], "b": [number, number]}))
    for status in (tmp_path / "t" / "_delta_log").glob("*checkpoint*"):
        status.unlink()
    log = DeltaLog(str(tmp_path / "t"), log.store, log.options)
    advice = table_report(log, ["a = 5", "b = 5"], checks=False).advice.to_pylist()
    told = {each["title"]: each for each in advice}
    assert list(told) == ["Write a checkpoint", "Compact small files", "Arrange the rows by a"]
    assert "30 commits" in told["Write a checkpoint"]["gain"]
    compact = told["Compact small files"]["gain"]
    done = log.optimize()
    assert f"{30 - done.removed.num_files + done.added.num_files} files" in compact
    assert "ZORDER BY (a)" in told["Arrange the rows by a"]["command"]


def test_a_table_without_files_and_times_beyond_the_calendar_get_a_page(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.create({"a": "int", "p": "timestamp"}, partition_by=["p"])
    assert "0 bytes" in table_report(log, ["a = 1"], checks=False).html
    file = {"size": 5, "partitionValues": {"p": None}, "modificationTime": 1, "dataChange": True}
    for version, time_ms in enumerate((2**62, -(2**62), 0), 1):
        info = {"inCommitTimestamp": time_ms, "operation": "X" * 5000, "engineInfo": "\ud800"}
        lines = [{"commitInfo": info}, {"add": {"path": f"x{version}", **file}}]
        commit = tmp_path / "t" / "_delta_log" / f"{version:020}.json"
        commit.write_text("\n".join(map(json.dumps, lines)))
    found = table_report(log, ["p > '2020-01-01'"], checks=False)
    figures = Elements(found.html).figures["The table after some of its commits"]
    assert [row[4] for row in figures] == ["3", "2", "1", "0"]
    assert len(found.html.encode()) < 300_000


def test_leftovers_are_no_damage(undrawn, tmp_path):
    log = busy(tmp_path / "t")
    orphan = tmp_path / "t" / "left.parquet"
    orphan.write_bytes(b"x" * 100)
    os.utime(orphan, (1, 1))
    found = table_report(log)
    assert "orphan" in found.html
    titles = found.advice.column("title").to_pylist()
    assert "Delete dead files" in titles
    assert "Repair the table" not in titles


def test_a_damaged_table_gets_a_page_that_says_so(undrawn, shell, tmp_path):
    log = busy(tmp_path / "t")
    name = log.files("month = 2")["path"][0].as_py()
    (tmp_path / "t" / name).unlink()
    commit = tmp_path / "t" / "_delta_log" / f"{1:020}.json"
    log.checkpoint()
    commit.write_text("{")
    page = tmp_path / "page.html"
    told = shell.json("report", tmp_path / "t", "--file", page)
    assert (told["advice"][0]["title"], told["advice"][0]["urgent"]) == ("Repair the table", True)
    shown = page.read_text()
    assert told["bytes"] == len(page.read_bytes())
    assert "missing-file" in shown
    assert "The commits can&#x27;t be read." in shown
    ran = shell("report", tmp_path / "t", "--file", page)
    assert (ran.status, page.read_text()) == (2, shown)
    assert shell("report", tmp_path / "none", "--file", tmp_path / "no.html").status == 3
    assert not (tmp_path / "no.html").exists()


def test_numbers_have_units():
    assert [bytes_text(size) for size in (0, 999, 1000, 123_456, 5 * 10**9, 2**63)] == [
        *("0 bytes", "999 bytes", "1.0 kB", "123 kB", "5.0 GB", "9.2 EB"),
    ]
    assert (plural(1, "file"), plural(1200, "file")) == ("1 file", "1,200 files")
    shares = [share_text(*pair) for pair in ((0, 0), (0, 5), (1, 1000), (999, 1000), (5, 5))]
    assert shares == ["-", "0 %", "below 1 %", "above 99 %", "100 %"]
    assert time_text(0) == "1970-01-01 00:00 UTC"
    assert time_text(2**62) == f"{2**62} ms"
