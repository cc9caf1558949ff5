"""The commands that look for damage: what they show, and their exit codes."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.cli.work import examination
from optimist.core import DeltaLog
from optimist.core.errors import StorageError
from optimist.core.maintenance.fsck.findings import REPAIRS
from optimist.core.runtime.clock import SystemClock
from optimist.logstores import LocalLogStore


def test_fsck_of_a_healthy_table_finds_nothing(shell, table):
    told = shell.json("fsck", table, "--deep")
    assert told == {
        "version": 3,
        "commits": 4,
        "files": 3,
        "deep": True,
        "filesRead": 3,
        "found": 0,
        "findings": [],
    }


def test_fsck_of_a_sample_says_which_part_it_has_looked_at(shell, table):
    told = shell.json("fsck", table, "--deep", "--sample", "40%")
    assert (told["files"], told["filesRead"]) == (3, 2)
    assert told["sample"] == "2 of 3 files were read"
    again = shell.json("fsck", table, "--deep", "--sample", 2, "--seed", told["seed"])
    assert again == told
    ran = shell("fsck", table, "--deep", "--sample", 1, "--seed", 5)
    assert "sample\t1 of 3 files were read\n" in ran.output
    assert "seed\t5\n" in ran.output
    assert "sample" not in shell("fsck", table, "--deep").output
    for wrong in (["--sample", "1%"], ["--deep", "--seed", 1], ["--deep", "--sample", "0%"]):
        ran = shell("fsck", table, *wrong)
        assert (ran.status, ran.output, "Nothing was done" in ran.errors) == (2, "", True)
    assert shell("fsck", table, "--undo", "x", "--sample", 1).status == 2


def test_fsck_shows_each_finding_with_its_proof_and_a_repair(shell, table):
    lost = next(Path(table).glob("month=2/*.parquet"))
    lost.unlink()
    (told,) = shell.json("fsck", table, status=1)["findings"]
    assert (told["kind"], told["path"]) == ("missing-file", str(lost))
    ran = shell("fsck", table)
    assert ran.status == 1
    assert "missing-file" in ran.output
    assert "optimist restore" in ran.output


def test_fsck_repairs_only_what_it_is_asked_to_repair(shell, table):
    bad = Path(table) / "_delta_log" / f"{2:020}.crc"
    bad.write_text("{")
    os.utime(bad, (1, 1))
    assert "--repair" in shell.json("fsck", table, status=1)["findings"][0]["repair"]
    told = shell.json("fsck", table, "--repair")
    assert told["findings"] == []
    assert [step["step"] for step in told["steps"]] == ["save", "remove"]
    assert Path(told["steps"][0]["savedAs"]).read_text() == "{"
    next(Path(table).glob("month=2/*.parquet")).unlink()
    assert shell.json("fsck", table, "--repair", status=1)["steps"] == []
    assert shell("fsck", table, "--drop-missing-files").status == 2
    told = shell.json("fsck", table, "--repair", "--drop-missing-files")
    assert [step["step"] for step in told["steps"]] == ["commit 4: FSCK"]
    assert shell.json("count", table) == {"rows": 8}


def test_fsck_undoes_a_repair_and_tells_what_it_left(shell, table):
    bad = Path(table) / "_delta_log" / f"{2:020}.crc"
    bad.write_text("{")
    os.utime(bad, (1, 1))
    record = shell.json("fsck", table, "--repair")["record"]
    assert shell("fsck", table, "--undo", record, "--deep").status == 2
    told = shell.json("fsck", table, "--undo", record)
    assert (told["record"], told["left"]) == (record, 0)
    assert [step["step"] for step in told["steps"]] == ["put back"]
    assert bad.read_text() == "{"
    assert (
        shell.json("fsck", table, "--undo", f"{table}/_delta_log/_repairs/{record}/")["steps"] == []
    )
    bad.write_text("of another")
    told = shell.json("fsck", table, "--undo", record, status=1)
    assert told["steps"][0]["leftBecause"] == "another file is there"
    assert shell("fsck", table, "--undo", "nix").status == 2


def test_the_schema_of_fsck_has_every_kind_of_finding():
    schemas = Path(__file__).parents[2] / "cli" / "schemas"
    schema = json.loads((schemas / "fsck.json").read_text())
    kind = schema["properties"]["findings"]["items"]["properties"]["kind"]
    assert kind["enum"] == list(REPAIRS)


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
    assert all(each["ok"] for each in told["checks"])
    check = told["checks"][-2]
    assert check["detail"].startswith("version 3;")
    ran = shell("doctor", table, "--conf", f"{key}=geheim-7f3a")
    assert ran.status == 0
    assert "geheim" not in ran.output + ran.errors + str(told)


def test_doctor_names_credentials_and_shows_none(shell, tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "credentials").write_text("geheim-7f3a")
    monkeypatch.setenv("HOME", str(home))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_KEY"):
        monkeypatch.setenv(name, "geheim-7f3a")
    for name in ("AZURE_STORAGE_ACCOUNT", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(name, raising=False)
    conf = ("--conf", "spark.hadoop.fs.s3a.secret.key=geheim-7f3a")
    told = shell.json("doctor", *conf)
    assert [(each["service"], each["kind"]) for each in told["credentials"]] == [
        ("S3", "option"),
        ("S3", "access key"),
        ("S3", "profiles"),
    ]
    assert told["credentials"][-1]["source"] == str(home / ".aws" / "credentials")
    ran = shell("doctor", *conf)
    assert "geheim" not in ran.output + ran.errors + str(told)


@pytest.mark.parametrize(("version", "is_fine"), [("17.0.2", True), ("1.8.0_392", False)])
def test_doctor_tells_if_spark_can_t_use_the_java_that_is_there(
    shell, tmp_path, monkeypatch, version, is_fine
):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("")
    (tmp_path / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(examination, "_version_of", lambda name: "4.0.0")
    told = shell.json("doctor", status=0 if is_fine else 1)
    assert told["javaVersion"] == version
    wrong = [each["detail"] for each in told["checks"] if not each["ok"]]
    assert len(wrong) == (not is_fine)
    assert all("needs Java 17" in each for each in wrong)


@pytest.mark.parametrize(("ahead_s", "told"), [(0, "at most"), (3600, "ahead"), (-3600, "behind")])
def test_doctor_compares_the_clocks(shell, tmp_path, monkeypatch, ahead_s, told):
    listed = LocalLogStore.list_from

    def shifted(store, path):
        for each in listed(store, path):
            yield replace(each, modified_ms=each.modified_ms + ahead_s * 1000)

    monkeypatch.setattr(LocalLogStore, "list_from", shifted)
    checks = shell.json("doctor", "--rehearse", tmp_path, status=1 if ahead_s else 0)["checks"]
    assert (checks[-1]["check"], checks[-1]["ok"]) == ("compare the clocks", not ahead_s)
    assert told in checks[-1]["detail"]


@pytest.mark.parametrize(
    ("ahead_ms", "skew_ms"), [(0, 0), (-900, 0), (3_600_000, 3_590_000), (-3_600_000, -3_590_000)]
)
def test_doctor_reads_the_clock_of_a_store_whose_answers_tell_it(
    shell, table, monkeypatch, ahead_ms, skew_ms
):
    def told(store, path):
        assert path.endswith("/_delta_log/")
        return SystemClock().now_ms() + ahead_ms

    monkeypatch.setattr(LocalLogStore, "service_time_ms", told, raising=False)
    for directory in (table, f"{table}-to-come"):
        status = 0 if directory == table and not skew_ms else 1
        found = shell.json("doctor", directory, status=status)
        check = found["checks"][-1]
        assert (check["check"], check["ok"]) == ("compare the clocks", not skew_ms)
        if skew_ms:
            assert found["clockSkewMs"] / skew_ms >= 1
        else:
            assert found["clockSkewMs"] == 0
    assert bool(skew_ms) == ("set them right" in check["detail"])


def test_doctor_says_what_tells_the_clock_of_a_store_whose_answers_do_not(
    shell, table, tmp_path, monkeypatch
):
    found = shell.json("doctor", table)
    assert found["clockSkewMs"] is None
    assert found["checks"][-1]["check"] == "compare the clocks"
    assert "--rehearse DIR" in found["checks"][-1]["detail"]
    found = shell.json("doctor", table, "--rehearse", tmp_path)
    assert (found["clockSkewMs"], "at most" in found["checks"][-1]["detail"]) == (0, True)

    def fail(*_: object) -> None:
        raise StorageError("no answer", kind="OPTIMIST_STORAGE_FAILED")

    monkeypatch.setattr(LocalLogStore, "service_time_ms", fail)
    assert shell.json("doctor", table)["clockSkewMs"] is None


def test_doctor_asks_a_store_that_does_not_answer_no_second_time(shell, table, monkeypatch):
    def fail(*_: object) -> None:
        raise StorageError("no answer", kind="OPTIMIST_STORAGE_FAILED")

    monkeypatch.setattr(DeltaLog, "snapshot", fail)
    monkeypatch.setattr(LocalLogStore, "service_time_ms", lambda *_: pytest.fail("asked again"))
    assert shell.json("doctor", table, status=1)["clockSkewMs"] is None


def test_doctor_tells_why_a_table_can_t_be_read(shell, tmp_path):
    told = shell.json("doctor", tmp_path / "none", status=1)
    assert "PATH_NOT_FOUND" in told["checks"][1]["detail"]
    (check,) = shell.json("doctor")["checks"]
    assert (check["check"], check["ok"]) == ("read the options", True)
    assert shell("doctor", "nix://x/y").status == 2


@pytest.mark.parametrize(
    ("confs", "told"),
    [
        (("optimist.spark.plane=arrow", "spark.optimist.spark.plane=native"), "CONTRADICTING"),
        (("delta.logStore.class=local", "delta.logStore.s3.impl=s3"), "INVALID_LOGSTORE_CONF"),
        (("optimist.nope=1",), "UNKNOWN_OPTION"),
        (("versionAsOf=1",), "belongs to one read"),
    ],
)
@pytest.mark.sample(1)
def test_doctor_finds_options_that_contradict_each_other(shell, table, confs, told):
    given = [part for conf in confs for part in ("--conf", conf)]
    (check,) = shell.json("doctor", table, "--rehearse", table, *given, status=1)["checks"]
    assert (check["check"], check["ok"]) == ("read the options", False)
    assert told in check["detail"]


def test_doctor_shows_the_line_that_installs_what_is_missing(shell, monkeypatch):
    monkeypatch.setattr(examination, "_version_of", lambda _: None)
    monkeypatch.setattr(
        examination.metadata, "requires", lambda _: ["rich>=13; extra == 'cli'", "boto3>=1; x"]
    )
    lines = {each["name"]: each["install"] for each in shell.json("doctor")["packages"]}
    assert lines["boto3"] == "pip install 'boto3>=1'"
    assert lines["numpy"] == "pip install 'numpy'"


def everything_below(path: Path) -> list[str]:
    return sorted(str(each) for each in path.rglob("*"))


@pytest.mark.parametrize("late", ["true", "false"])
def test_doctor_rehearses_a_commit_and_leaves_nothing(shell, table, tmp_path, late):
    before = everything_below(tmp_path)
    conf = f"spark.optimist.postCommit.background={late}"
    told = shell.json("doctor", "--rehearse", tmp_path, "--conf", conf)
    assert "committed in" in told["checks"][-2]["detail"]
    assert everything_below(tmp_path) == before


def test_a_rehearsal_that_fails_leaves_nothing(shell, tmp_path, monkeypatch):
    told = shell.json("doctor", "--rehearse", tmp_path / "none", status=1)
    assert "no such directory" in told["checks"][-1]["detail"]
    assert everything_below(tmp_path) == []

    def fail(_: object) -> None:
        raise StorageError("The disk is gone.", kind="OPTIMIST_STORAGE")

    monkeypatch.setattr(DeltaLog, "to_arrow", fail)
    told = shell.json("doctor", "--rehearse", tmp_path, status=1)
    assert "The disk is gone." in told["checks"][1]["detail"]
    assert everything_below(tmp_path) == []
    monkeypatch.setattr("optimist.cli.work.rehearsal.remove_directory", lambda *_: fail(None))
    told = shell.json("doctor", "--rehearse", tmp_path, status=1)
    (left,) = tmp_path.iterdir()
    assert f"{left} could not be removed" in told["checks"][1]["detail"]
