"""Files on this machine's disk for a command: who removes them, and what a full disk says."""

from __future__ import annotations

import atexit
import os
import re

import pyarrow as pa
import pytest

from optimist.core.data.parquet.spilled_rows import SpilledRows
from optimist.core.data.storage.scratch_directory import ScratchDirectory
from optimist.core.errors import StorageError
from optimist.core.local.merge.update_values import UpdateValues


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def in_child(work) -> None:
    """Run it in a forked child, which then runs the finalizers as Python does at its end."""
    child = os.fork()
    if not child:
        try:
            work()
            atexit._run_exitfuncs()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_forked_child_leaves_the_rows_of_its_parent(scratch):
    rows = SpilledRows()
    rows.add({1: [pa.table({"n": [1, 2]})]})
    in_child(lambda: None)
    in_child(rows.close)
    assert rows.finish() == (1,)
    assert pa.concat_tables(rows.read(1, 1))["n"].to_pylist() == [1, 2]
    rows.close()
    assert list(scratch.iterdir()) == []


def test_a_directory_goes_with_the_last_reference(scratch):
    directory = ScratchDirectory()
    assert len(list(scratch.iterdir())) == 1
    del directory
    assert list(scratch.iterdir()) == []


def test_a_missing_directory_for_scratch_is_an_error_that_names_it(monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/no/such/directory")
    with pytest.raises(StorageError, match=re.escape("/no/such/directory, could not be written")):
        SpilledRows()


def test_rows_that_another_program_removed_are_an_error_of_storage(scratch):
    rows = SpilledRows()
    rows.add({1: [pa.table({"n": [1]})]})
    rows.finish()
    for path in scratch.rglob("*.arrow"):
        path.unlink()
    with pytest.raises(StorageError, match="could not be read"):
        list(rows.read(1, 1))


def test_a_disk_that_is_full_at_any_write_of_new_values_is_one_error(monkeypatch):
    monkeypatch.setattr("optimist.core.local.merge.update_values._HELD_BYTES", 0)
    batch = pa.table({"p": [0], "c": pa.array([1], pa.int32()), "s": ["x" * 200_000]})
    for path in ("/dev/full", "/no/such/directory/values"):
        monkeypatch.setattr(ScratchDirectory, "path", lambda *_, found=path: found)
        values = UpdateValues()
        with pytest.raises(StorageError, match="Nothing was committed") as caught:
            values.add("a", batch)
            values.at("a", pa.array([0]))
        values.close()
        full = path == "/dev/full"
        assert (caught.value.kind == "OPTIMIST_NO_SPACE") == full, caught.value
