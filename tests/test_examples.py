"""What a newcomer runs first: the examples' own conf files, and a table carried along."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from carry import main
from clouds import Cloud
from conf_file import read_conf
from multi_cloud import tell_what_is_left
from narration import Narrator
from optimist.core import DeltaLog
from optimist.core.log.names import commit_path
from optimist.core.protocol.actions import AddFile, actions_to_bytes

pytestmark = pytest.mark.sample(1)

ROOT = Path(__file__).resolve().parent.parent
SECRETS = "p$ss w0rd=/+${HOME}#\t$$EMULATOR_S3"


@pytest.mark.parametrize("between", [" ", "    ", "\t", " \t ", "=", " = "])
def test_values_of_a_conf_file_are_taken_as_they_are(tmp_path: Path, between: str) -> None:
    file = tmp_path / "my.conf"
    file.write_text(f"# keys\n\n  spark.a.key{between}{SECRETS}  \nspark.b{between}x=y\nempty\n")
    assert read_conf(file, {}) == {"spark.a.key": SECRETS, "spark.b": "x=y"}


def test_addresses_of_emulators_are_filled_in_and_a_missing_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "my.conf"
    file.write_text("spark.a\thttp://${EMULATOR_S3}/x\n")
    assert read_conf(file, {"EMULATOR_S3": "h:1"}) == {"spark.a": "http://h:1/x"}
    with pytest.raises(KeyError, match="EMULATOR_S3"):
        read_conf(file, {})


@pytest.mark.parametrize("file", sorted((ROOT / "examples" / "clouds").glob("*.conf")), ids=str)
def test_every_line_of_the_conf_files_is_understood(file: Path) -> None:
    names = ("S3", "DYNAMODB", "AZURITE", "GCS", "HDFS")
    conf = read_conf(file, {f"EMULATOR_{name}": "http://h:1" for name in names})
    lines = [line for line in file.read_text().splitlines() if line and line[0] != "#"]
    assert len(conf) == len(lines)
    assert "EMULATOR" not in str(conf)


def test_a_table_of_ones_own_is_carried_between_two_stores_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    confs = []
    for name in ("source", "target"):
        file = tmp_path / f"{name}.conf"
        file.write_text(f"spark.optimist.engineInfo\tof the {name}\n")
        confs += [f"--{name}-conf", str(file)]
    log = DeltaLog.for_path(here)
    for number in range(3):
        log.append(pa.table({"n": [number]}))
    assert main([here, there, *confs]) == 0
    log.append(pa.table({"n": [3]}))
    assert main([here, there, *confs]) == 0
    copy = DeltaLog.for_path(there)
    assert sorted(copy.to_arrow()["n"].to_pylist()) == [0, 1, 2, 3]
    assert len(copy.history()) == 4
    newest = copy.history()[0].info
    assert newest is not None
    assert str(newest.engine_info).startswith("of the target")
    assert capsys.readouterr().out.count("version ") == 4 + 2


@pytest.mark.parametrize("are_emulated", [True, False])
def test_the_clouds_end_with_where_their_tables_are_and_what_still_runs(
    capsys: pytest.CaptureFixture[str], are_emulated: bool
) -> None:
    clouds = [Cloud("s3", "s3a://x", {}), Cloud("gcs", "gs://y", {})]
    tell_what_is_left(clouds, Narrator(), are_emulated=are_emulated)
    told = capsys.readouterr().out
    for url in ("s3a://x/flights", "gs://y/flights", "gs://y/from-s3"):
        assert url in told
    assert ("localstack/down.py" in told) == are_emulated


def test_a_file_outside_the_source_is_not_carried_out_of_the_target(tmp_path: Path) -> None:
    """By its path the copy would replace another file, and the source's commit chose which."""
    source, target = DeltaLog.for_path(str(tmp_path / "a" / "t")), str(tmp_path / "b" / "t")
    source.append(pa.table({"n": [1]}))
    (tmp_path / "b").mkdir()
    for folder in ("a", "b"):
        (tmp_path / folder / "canary").write_text(folder)
    add = AddFile("../canary", {}, 1, 1, data_change=True)
    path = commit_path(source.log_path, 1)
    source.store.put_if_absent(path, actions_to_bytes([add]))
    with pytest.raises(NotImplementedError, match="outside"):
        main([source.table_path, target])
    assert (tmp_path / "b" / "canary").read_text() == "b"
    assert DeltaLog.for_path(target).snapshot().version == 0
