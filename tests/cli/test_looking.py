"""Each command that looks: its JSON by its schema, its tables, and its exit code."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from optimist.cli.app import COMMANDS
from optimist.core import ColumnChange, DeltaLog

ROOT = Path(__file__).parents[2]


def test_history_lists_commits_newest_first(shell, table):
    commits = shell.json("history", table)["commits"]
    assert [each["version"] for each in commits] == [3, 2, 1, 0]
    assert [each["operation"] for each in commits] == ["DELETE", "WRITE", "WRITE", "WRITE"]
    assert commits[0]["operationMetrics"]["numDeletedRows"] == "2"
    assert commits[0]["timestamp"].endswith("Z")
    assert [each["version"] for each in shell.json("history", table, "-n", 1)["commits"]] == [3]
    shown = shell("history", table).output.splitlines()
    assert shown[0].split() == [
        *("version", "timestamp", "operation", "engineInfo", "operationMetrics"),
    ]
    assert len(shown) == 5


def test_detail_tells_facts(shell, table):
    facts = shell.json("detail", table)
    expected = DeltaLog.for_path(table).detail()
    assert facts["numFiles"] == expected.num_files == 3
    assert facts["sizeInBytes"] == expected.size_in_bytes
    assert facts["partitionColumns"] == ["month"]
    assert facts["properties"] == {"delta.enableChangeDataFeed": "true"}
    assert "\nnumFiles\t3\n" in shell("detail", table).output


def test_schema_tells_columns_of_a_version(shell, table):
    log = DeltaLog.for_path(table)
    log.sql("ALTER TABLE this ADD COLUMNS (pos STRUCT<lat: DOUBLE> COMMENT 'where')")
    columns = shell.json("schema", table)["columns"]
    assert columns[0] == {
        "column": "month",
        "type": "int",
        "nullable": True,
        "partition": True,
        "comment": None,
    }
    assert (columns[3]["type"], columns[3]["comment"]) == ("struct<lat:double>", "where")
    assert len(shell.json("schema", table, "--version", 3)["columns"]) == 3


def test_count_counts(shell, table):
    assert shell.json("count", table) == {"rows": 13}
    assert shell.json("count", table, "--where", "month = 1") == {"rows": 3}
    assert shell.json("count", table, "--version", 2) == {"rows": 15}
    assert shell("count", table).output == "rows\t13\n"


def test_head_shows_few_rows(shell, table):
    rows = shell.json("head", table, "-n", 2, "--where", "month = 3", "--columns", "tail, delay")
    assert rows["rows"] == [{"tail": "N0", "delay": 30}, {"tail": "N1", "delay": 31}]
    shown = shell("head", table, "--where", "month = 3 AND tail IS NULL").output
    assert shown == "month\tdelay\ttail\n3\t34\tNULL\n"


def test_cat_writes_rows_in_each_format(shell, table, tmp_path):
    expected = DeltaLog.for_path(table).to_arrow()
    lines = shell("cat", table).output.splitlines()
    assert [json.loads(line) for line in lines] == expected.to_pylist()
    text = shell("cat", table, "--format", "csv").output
    read = csv.read_csv(io.BytesIO(text.encode()), convert_options=_empty_is_null())
    assert read.to_pylist() == expected.to_pylist()
    file = tmp_path / "rows.parquet"
    assert shell("cat", table, "--format", "parquet", "--file", file).output == ""
    assert parquet.read_table(file).equals(expected)


def _empty_is_null() -> csv.ConvertOptions:
    return csv.ConvertOptions(strings_can_be_null=True, null_values=[""])


def test_cat_replaces_no_file_and_leaves_no_half_file(shell, table, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("mine")
    ran = shell("cat", table, "--file", file)
    assert (ran.status, file.read_text()) == (2, "mine")
    victim = next(Path(table).glob("month=2/*.parquet"))
    victim.unlink()
    ran = shell("cat", table, "--file", tmp_path / "new.jsonl")
    assert ran.status == 3
    assert not (tmp_path / "new.jsonl").exists()


def test_files_tells_which_rule_leaves_a_file_out(shell, table):
    found = shell.json("files", table, "--where", "month >= 2 AND delay > 25")
    rules = {each["rule"]: each["files"] for each in found["rules"]}
    assert rules == {"partition values: month >= 2": 1, "statistics: delay > 25": 1}
    read = [each["path"] for each in found["files"] if each["read"]]
    assert read == DeltaLog.for_path(table).files("month >= 2 AND delay > 25")["path"].to_pylist()
    assert (found["filesRead"], found["filesLeftOut"]) == (1, 2)
    sizes = {each["read"]: each["size"] for each in found["files"]}
    assert found["bytesRead"] == sizes[True]
    assert found["bytesRead"] + found["bytesLeftOut"] == sum(e["size"] for e in found["files"])


def test_files_without_a_condition_are_all_read(shell, table):
    found = shell.json("files", table)
    assert (found["filesRead"], found["filesLeftOut"], found["rules"]) == (3, 0, [])
    assert [each["rows"] for each in found["files"]] == [5, 5, 3]


def test_files_counts_rows_without_deleted_ones(shell, tmp_path):
    conf = "spark.databricks.delta.properties.defaults.enableDeletionVectors"
    log = DeltaLog.for_path(str(tmp_path / "t"), {conf: "true"})
    log.append(pa.table({"a": list(range(10))}))
    log.delete("a < 3")
    (file,) = shell.json("files", tmp_path / "t")["files"]
    assert file["rows"] == log.count() == 7


@pytest.mark.parametrize("where", ["false", "month = 9", "delay < 0", "tail LIKE 'X%'"])
def test_files_of_a_condition_that_nothing_meets(shell, table, where):
    found = shell.json("files", table, "--where", where)
    assert found["filesRead"] + found["filesLeftOut"] == 3
    assert found["filesRead"] == DeltaLog.for_path(table).files(where).num_rows


def test_files_of_conditions_of_several_columns(shell, tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.append(pa.table({"a": [1, 2], "b": [1, 2]}))
    found = shell.json("files", tmp_path / "t", "--where", "(a = 5 OR b = 5) AND a < 3")
    assert [each["rule"] for each in found["rules"]] == ["statistics: a = 5 OR b = 5"]


def test_files_believes_no_statistics_where_queries_do_not(shell, table):
    conf = "spark.databricks.delta.stats.skipping=false"
    found = shell.json("files", table, "--where", "delay > 25", "--conf", conf)
    assert found["filesLeftOut"] == 0


def test_log_tells_one_commit(shell, table):
    told = shell.json("log", table, 3)
    assert told["operation"] == "DELETE"
    assert (told["addedFiles"], told["removedFiles"], told["changeFiles"]) == (1, 1, 1)
    assert {each["change"] for each in told["files"]} == {"added", "removed"}
    assert told["addedBytes"] == sum(e["size"] for e in told["files"] if e["change"] == "added")
    assert told["words"].startswith("Version 3 is DELETE by Optimist/")
    first = shell.json("log", table, 0)
    assert first["changesMetadata"]
    assert first["changesProtocol"]
    assert (
        told["timestamp"][:23]
        == shell.json("history", table)["commits"][0]["timestamp"].replace("T", " ")[:23]
    )
    ran = shell("log", table, 9)
    assert (ran.status, "holds the versions 0 to 3" in ran.errors) == (3, True)


def test_diff_shows_files_columns_properties_and_rows(shell, table):
    log = DeltaLog.for_path(table)
    log.alter.add_columns({"note": "string"})
    log.alter.set_properties({"a.b": "c"})
    told = shell.json("diff", table, 2, 5, status=1)
    assert (told["rowsFrom"], told["rowsTo"]) == (15, 13)
    assert (told["filesAdded"], told["filesRemoved"]) == (1, 1)
    assert [each["change"] for each in told["files"]] == ["removed", "added"]
    assert told["changes"] == [
        {"what": "column", "name": "note", "before": None, "after": "string"},
        {"what": "property", "name": "a.b", "before": None, "after": "c"},
    ]
    back = shell.json("diff", table, 5, 2, status=1)
    gone = {"what": "column", "name": "note", "before": "string", "after": None}
    assert back["changes"][0] == gone
    same = shell.json("diff", table, 5, 5)
    assert (same["files"], same["changes"]) == ([], [])
    assert shell("diff", table, 2, 99).status == 3


def test_log_tells_what_the_history_tells_and_no_size_that_is_unknown(shell, table):
    path = DeltaLog.for_path(table).files("month = 2")["path"][0].as_py()
    info = {
        "timestamp": 5,
        "operation": "DELETE",
        "operationParameters": {"a": {"b": True}, "c": None, "d": [1]},
        "operationMetrics": {"n": 1},
    }
    lines = [
        {"commitInfo": info},
        {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}},
    ]
    commit = Path(table) / "_delta_log" / f"{4:020}.json"
    commit.write_text("\n".join(map(json.dumps, lines)))
    told, known = shell.json("log", table, 4), shell.json("history", table)["commits"][0]
    assert told["operationParameters"] == known["operationParameters"]
    assert told["operationParameters"] == {"a": '{"b":true}', "c": None, "d": "[1]"}
    assert told["timestamp"][:23] == known["timestamp"].replace("T", " ")[:23]
    assert (told["removedFiles"], told["removedBytes"]) == (1, None)
    assert "removes 1 files (of unknown size)" in told["words"]


def test_log_tells_of_a_commit_that_only_a_checkpoint_has(shell, table):
    log = DeltaLog.for_path(table)
    log.checkpoint()
    log.append(log.to_arrow().slice(0, 1))
    for version in range(4):
        (Path(table) / "_delta_log" / f"{version:020}.json").unlink()
    ran = shell("log", table, 3)
    assert (ran.status, "was removed" in ran.errors) == (3, True)


def test_diff_shows_what_no_type_shows(shell, tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    columns = {"a": "int", "b": "struct<c: int>", "p": "string"}
    log.create(columns, properties={"delta.columnMapping.mode": "name"})
    log.alter.change_columns([ColumnChange("a", comment="an `a`")])
    log.alter.set_comment("of tests")
    log.alter.cluster_by(["a"])
    log.alter.drop_columns(["p"])
    log.alter.add_columns({"p": "string"})
    changes = shell.json("diff", tmp_path / "t", 0, 5, status=1)["changes"]
    told = {(each["what"], each["name"]): (each["before"], each["after"]) for each in changes}
    assert told["table", "description"] == (None, "of tests")
    assert told["layout", "clustered by"] == (None, "a")
    assert told["protocol", "clustering"] == (None, "supported")
    assert "an `a`" in told["column", "a"][1]
    before, after = map(json.loads, told["column", "p"])
    assert before["fields"][0]["name"] == after["fields"][0]["name"] == "p"
    assert before != after
    assert ("column", "b") not in told


def test_changes_shows_changed_rows(shell, table):
    rows = shell.json("changes", table, "--from", 3)["rows"]
    assert [(each["_change_type"], each["delay"]) for each in rows] == [
        ("delete", 13),
        ("delete", 14),
    ]
    shown = shell.json("changes", table, "--from", 1, "--to", 2, "--where", "delay = 20")
    assert len(shown["rows"]) == 1


def test_tables_finds_each_table_and_tells_which_is_broken(shell, table, tmp_path):
    inner = tmp_path / "deep" / "er\nest" / "t=1"
    DeltaLog.for_path(str(inner)).append(pa.table({"x": [1]}))
    (tmp_path / "empty" / "_delta_log").mkdir(parents=True)
    found = shell.json("tables", tmp_path)["tables"]
    assert [(each["table"], each["version"], each["files"]) for each in found] == [
        (str(inner), 0, 1),
        (table, 3, 3),
    ]
    (inner / "_delta_log" / f"{0:020}.json").write_text("{")
    found = shell.json("tables", tmp_path, status=1)["tables"]
    assert "OPTIMIST_MALFORMED_COMMIT" in found[0]["error"]
    assert shell.json("tables", tmp_path / "none")["tables"] == []


def test_sql_runs_statements_by_path_and_by_this(shell, table):
    words = f"DESCRIBE HISTORY delta.`{table}` LIMIT 1"
    assert [each["version"] for each in shell.json("sql", words)["rows"]] == [3]
    done = shell.json("sql", "DELETE FROM this WHERE month = 3", "--table", table)
    assert done["rows"] == [{"num_affected_rows": 5}]
    assert DeltaLog.for_path(table).count() == 8
    ran = shell("sql", "SELECT 1")
    assert (ran.status, ran.errors.count("\n")) == (2, 1)


def test_every_command_has_a_schema_and_an_example():
    names = {each.__name__.replace("_", "-") for each in COMMANDS}
    schemas = (ROOT / "cli" / "schemas").glob("*.json")
    assert {path.stem for path in schemas} == names - {"cat"}
    for command in COMMANDS:
        assert "Example: optimist " in (command.__doc__ or ""), command


def test_no_row_controls_a_terminal(shell, tmp_path, monkeypatch):
    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

    path = str(tmp_path / "t")
    DeltaLog.for_path(path).append(pa.table({"x": ["a\x1b[31m", None], "n": [1, 2]}))
    for row_format in ("csv", "jsonl"):
        terminal = Terminal()
        monkeypatch.setattr("optimist.cli.work.rows_out.output_stream", lambda out=terminal: out)
        assert shell("cat", path, "--format", row_format).status == 0
        assert b"\x1b" not in terminal.getvalue()
        assert b"u001b[31m" in terminal.getvalue()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    ran = shell("cat", path, "--format", "parquet")
    assert (ran.status, ran.output, "--file" in ran.errors) == (2, "", True)
