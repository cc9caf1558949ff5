"""The commands that look for damage: what they show, and their exit codes."""

from __future__ import annotations

import platform
from pathlib import Path

import pyarrow as pa

from optimist.core import DeltaLog


def test_fsck_of_a_healthy_table_finds_nothing(shell, table):
    told = shell.json("fsck", table, "--deep")
    assert told == {
        "version": 3,
        "commits": 4,
        "files": 3,
        "deep": True,
        "found": 0,
        "findings": [],
    }


def test_fsck_shows_each_finding_with_its_proof_and_a_repair(shell, table):
    lost = next(Path(table).glob("month=2/*.parquet"))
    lost.unlink()
    (told,) = shell.json("fsck", table, status=1)["findings"]
    assert (told["kind"], told["path"]) == ("missing-file", str(lost))
    ran = shell("fsck", table)
    assert ran.status == 1
    assert "missing-file" in ran.output
    assert "optimist restore" in ran.output


def test_fsck_names_damage_where_no_version_can_be_read(shell, tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.append(pa.table({"x": [1]}))
    (tmp_path / "t" / "_delta_log" / f"{0:020}.json").write_text("{\x1b[31m")
    told = shell.json("fsck", tmp_path / "t", status=1)
    assert [each["kind"] for each in told["findings"]] == ["torn-commit"]
    assert (told["version"], told["files"]) == (None, None)
    assert "\x1b" not in shell("fsck", tmp_path / "t").output
    assert shell("fsck", tmp_path / "none").status == 3


def test_doctor_shows_versions_the_store_and_no_secret(shell, table):
    key = "fs.azure.account.key.x"
    told = shell.json("doctor", table, "--conf", f"{key}=geheim-7f3a")
    assert told["options"] == [key]
    assert told["python"] == platform.python_version()
    versions = {each["name"]: each["version"] for each in told["packages"]}
    assert versions["pyarrow"] == pa.__version__
    facts = {each["fact"]: each["value"] for each in told["store"]}
    assert facts["store"].endswith("LocalLogStore")
    (check,) = told["checks"]
    assert check["ok"]
    assert check["detail"].startswith("version 3;")
    ran = shell("doctor", table, "--conf", f"{key}=geheim-7f3a")
    assert ran.status == 0
    assert "geheim" not in ran.output + ran.errors + str(told)


def test_doctor_tells_why_a_table_can_t_be_read(shell, tmp_path):
    told = shell.json("doctor", tmp_path / "none", status=1)
    assert "PATH_NOT_FOUND" in told["checks"][0]["detail"]
    assert shell.json("doctor")["checks"] == []
    assert shell("doctor", "nix://x/y").status == 2
