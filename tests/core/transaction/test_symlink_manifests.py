"""Symlink manifests of several writers: whoever is last, they are of the newest version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import PostCommitHookError
from optimist.core.log.names import commit_path
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import AddFile, actions_to_bytes
from optimist.core.testing import FaultyLogStore, ManualClock, Pause, When
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import LocalLogStore

KEPT = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
MOMENTS = [
    ("list_from", "", When.AFTER),  # it has looked for later commits
    ("put_overwrite", "manifest", When.BEFORE),
    ("put_overwrite", "manifest", When.AFTER),
]


class Scene:
    """A table with manifests, as two writers see it."""

    def __init__(self, path: Path, *, is_partitioned: bool = True) -> None:
        self.path = path
        self.store = FaultyLogStore(LocalLogStore())
        self.clock = ManualClock()
        self.mine = DeltaLog(str(path), self.store, EngineOptions(), clock=self.clock)
        self.theirs = DeltaLog(str(path), LocalLogStore(), EngineOptions())
        columns = ["p"] if is_partitioned else []
        self.theirs.append(pa.table({"p": ["a"], "v": [0]}), partition_by=columns)
        txn = self.theirs.start_transaction()
        txn.update_metadata(replace(txn.metadata, configuration=KEPT))
        txn.commit([], Operation("SET TBLPROPERTIES"))
        self.append(self.theirs, 1)

    def append(self, log: DeltaLog, value: int) -> None:
        log.append(pa.table({"p": ["a"], "v": [value]}))

    def plan(self, moment: tuple[str, str, When], then: Callable[[], object]) -> None:
        what, name, when = moment
        self.store.clear()
        self.store.plan(Pause(what, when, lambda _: then(), name=name))

    def manifests(self) -> dict[str, list[str]]:
        root = self.path / "_symlink_format_manifest"
        return {
            str(file.relative_to(root)): sorted(Path(line).name for line in _lines(file))
            for file in root.rglob("manifest")
        }

    def live(self) -> list[str]:
        paths = DeltaLog(str(self.path), LocalLogStore()).snapshot().files.column("path")
        return sorted(Path(path).name for path in paths.to_pylist())


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_hook_that_runs_late_writes_what_others_have_committed_since(tmp_path, moment):
    scene = Scene(tmp_path / "t")
    committed = []
    hooks = type(scene.mine._commits).run_hooks

    def late(commits, registered, done):
        if commits is scene.mine._commits:
            scene.plan(moment, lambda: scene.append(scene.theirs, 8))
            committed.append(done.version)
        return hooks(commits, registered, done)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(scene.mine._commits), "run_hooks", late)
        scene.append(scene.mine, 7)
    assert committed == [3]
    assert scene.manifests() == {"p=a/manifest": scene.live()}
    assert len(scene.live()) == 4


@pytest.mark.parametrize("is_partitioned", [True, False])
def test_the_hook_of_an_older_commit_that_runs_last_takes_nothing_back(tmp_path, is_partitioned):
    scene = Scene(tmp_path / "t", is_partitioned=is_partitioned)
    scene.plan(
        ("put_if_absent", "00000000000000000003.json", When.AFTER),
        lambda: scene.append(scene.theirs, 8),
    )
    scene.append(scene.mine, 7)
    assert list(scene.manifests().values()) == [scene.live()]
    assert len(scene.live()) == 4


@pytest.mark.parametrize("moment", MOMENTS)
def test_what_is_generated_is_of_the_newest_version(tmp_path, moment):
    scene = Scene(tmp_path / "t")

    def change() -> None:
        scene.append(scene.theirs, 8)
        scene.theirs.append(pa.table({"p": ["b"], "v": [9]}))

    scene.mine.snapshot()
    scene.plan(moment, change)
    scene.mine.generate()
    listed = [name for names in scene.manifests().values() for name in names]
    assert sorted(listed) == scene.live()
    assert set(scene.manifests()) == {"p=a/manifest", "p=b/manifest"}


def test_whoever_is_overtaken_for_ever_says_so(tmp_path):
    scene = Scene(tmp_path / "t")

    def overtake(_: str) -> None:
        scene.clock.advance(1000)
        scene.append(scene.theirs, 8)
        scene.store.plan(Pause("put_overwrite", When.AFTER, overtake, name="manifest"))

    scene.store.plan(Pause("put_overwrite", When.AFTER, overtake, name="manifest"))
    with pytest.raises(PostCommitHookError) as raised:
        scene.append(scene.mine, 7)
    assert raised.value.__cause__.kind == "OPTIMIST_MANIFEST_OVERTAKEN"
    assert len(scene.live()) == 4


def test_manifests_that_a_later_commit_wants_no_more_are_left_alone(tmp_path):
    scene = Scene(tmp_path / "t")
    before = scene.manifests()

    def unset() -> None:
        txn = scene.theirs.start_transaction(scene.theirs.snapshot())
        txn.update_metadata(replace(txn.metadata, configuration={}))
        txn.commit([], Operation("UNSET TBLPROPERTIES"))

    scene.plan(("put_if_absent", "00000000000000000003.json", When.AFTER), unset)
    scene.append(scene.mine, 7)
    assert scene.manifests() == before


def test_the_manifests_of_a_partitioning_that_is_gone_go_with_it(tmp_path):
    scene = Scene(tmp_path / "t")
    assert set(scene.manifests()) == {"p=a/manifest"}
    txn = scene.mine.start_transaction(scene.mine.snapshot())
    removes = [_remove(item) for item in txn.filter_files().select(["path", "size"]).to_pylist()]
    txn.update_metadata_for_table_overwrite(replace(txn.metadata, partition_columns=()))
    new = AddFile("new", {}, size=1, modification_time=1, data_change=True)
    txn.commit([*removes, new], Operation.write("Overwrite"))
    assert scene.manifests() == {"manifest": ["new"]}


def _remove(item):
    add = AddFile(item["path"], {"p": "a"}, item["size"], modification_time=1, data_change=True)
    return add.remove(1, data_change=True)


@pytest.mark.parametrize("asks", [False, True])
def test_texts_with_one_directory_have_one_manifest(tmp_path, asks):
    scene = Scene(tmp_path / "t")
    others = [{"p": None}, {"p": ""}, {"p": "__HIVE_DEFAULT_PARTITION__"}, {}, {"p": "b"}]
    adds = [AddFile(f"f{n}", each, 1, 1, True) for n, each in enumerate(others)]
    path = commit_path(scene.mine.log_path, scene.mine.snapshot().version + 1)
    scene.store.put_if_absent(path, actions_to_bytes(adds))  # as other writers spell null
    last = AddFile("f5", {"p": None}, 1, 1, True)
    scene.mine.start_transaction().commit([last], Operation.write("Append"))
    if asks:
        scene.mine.generate("symlink_format_manifest")
    found = scene.manifests()
    nulls = found.pop("p=__HIVE_DEFAULT_PARTITION__/manifest")
    assert nulls == ["f0", "f1", "f2", "f3", "f5"]
    # The hook writes the manifests of its own commit only.
    assert set(found) == ({"p=a/manifest", "p=b/manifest"} if asks else {"p=a/manifest"})


def test_the_manifests_of_all_partitions_follow_a_restore(tmp_path):
    scene = Scene(tmp_path / "t")
    before = scene.manifests()
    scene.theirs.append(pa.table({"p": ["b", None], "v": [2, 3]}))
    scene.theirs.delete("p = 'a'")
    assert scene.manifests().keys() != before.keys()
    scene.mine.restore(2)
    assert scene.manifests() == before
    assert sorted(name for names in before.values() for name in names) == scene.live()
