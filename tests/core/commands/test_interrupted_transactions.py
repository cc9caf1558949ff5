"""A block interrupted between any two lines: all of it is in the table, or none of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from interrupts import interrupted, places
from optimist.core import DeltaLog
from optimist.core.options.engine import EngineOptions
from optimist.logstores import LocalLogStore

pytestmark = pytest.mark.usefixtures("quiet_log")
FOLDERS = ("table/table_transaction.py", "transaction/several.py", "transaction/step.py")
ALL = ("commands/command.py", "commands/uncommitted_files.py", "transaction/", *FOLDERS)
STAGING = ("transaction/step.py", "transaction/staged.py", "transaction/committer.py")
"""Where no request can be under way, so that no file may be left."""


class Scene:
    """A table with the rows 1 to 3 and deletion vectors, and a block on it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        conf = {"spark.databricks.delta.properties.defaults.enableDeletionVectors": "true"}
        options = EngineOptions.from_options(conf)
        self.log = DeltaLog(str(path), LocalLogStore(), options)
        self.log.append(rows(1, 2, 3))

    def block(self) -> None:
        with self.log.transaction() as txn:
            txn.append(rows(4))
            txn.delete("id = 1")
            txn.update(set={"id": "id + 10"}, predicate="id = 4")
            txn.alter.set_comment("of a block")

    def there(self) -> set[str]:
        names = {str(each.relative_to(self.path)) for each in self.path.rglob("*.*")}
        return {name for name in names if name.endswith(("parquet", "bin")) and "log" not in name}

    def found(self) -> tuple[list[int], str | None]:
        log = DeltaLog(str(self.path), LocalLogStore())
        return sorted(log.to_arrow()["id"].to_pylist()), log.metadata.description


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


BEFORE, AFTER = ([1, 2, 3], None), ([2, 3, 14], "of a block")


@pytest.mark.parametrize(
    ("folders", "one_in"), [(FOLDERS, 2), pytest.param(ALL, 5, marks=pytest.mark.again)]
)
def test_an_interrupted_block_is_done_whole_or_not_at_all(tmp_path, folders, one_in):
    struck = 0
    found = list(places(Scene(tmp_path / "t").block, folders))
    for number, place in enumerate(found[::one_in]):
        scene = Scene(tmp_path / f"t{number}")
        old = scene.there()
        struck += interrupted(scene.block, folders, place)
        told = scene.found()
        assert told in (BEFORE, AFTER), place
        live = set(scene.log.snapshot().files["path"].to_pylist())
        assert live <= scene.there(), place
        if told == BEFORE and place.file in STAGING:
            assert scene.there() == old, place
        with scene.log.transaction() as txn:  # nothing that the first one held is held any more
            txn.append(rows(9))
        assert scene.found()[0] == sorted([*told[0], 9]), place
    assert struck > 20
