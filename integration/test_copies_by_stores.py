"""Deep clones within one store: it copies the files itself, and no byte of them comes here."""

from __future__ import annotations

import io
import json
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from optimist.core import Column, DeltaLog
from optimist.core.data.storage import copied_file
from optimist.core.errors import OptimistError

STORES = ("s3", "azure", "gcs")
ROWS = 1000


@pytest.fixture
def azure(azure_server, container):
    given = {
        "account": azure_server.account,
        "accountKey": azure_server.key,
        "endpoint": azure_server.endpoint,
    }
    options = {f"optimist.store.azure.{name}": value for name, value in given.items()}
    return f"az://{container.container_name}", options


@pytest.fixture(params=STORES)
def place(request):
    """The URL above the tables, and the options that lead there."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def poured(monkeypatch):
    """The files that were read and written, in order."""
    pour, seen = copied_file._write_copy, []

    def noting(copy, *others):
        seen.append(copy.path)
        pour(copy, *others)

    monkeypatch.setattr(copied_file, "_write_copy", noting)
    return seen


def source_at(place, options):
    log = DeltaLog.for_path(f"{place}/ta ble%20", options)
    for number in range(3):
        log.append(pa.table({"id": range(number * ROWS, (number + 1) * ROWS)}))
    return log


def objects_below(log):
    filesystem, inner = copied_file.filesystem_for(log.table_path, log.table.data_access())
    chosen = fs.FileSelector(inner, recursive=True, allow_not_found=True)
    return sorted(each.path for each in filesystem.get_file_info(chosen) if each.is_file)


def put(log, name, content):
    path = f"{log.table_path}/{name}"
    filesystem, inner = copied_file.filesystem_for(path, log.table.data_access())
    with filesystem.open_output_stream(inner) as sink:
        sink.write(content)


def test_the_store_copies_within_itself(place, poured):
    root, options = place
    source = source_at(root, options)
    copy = f"{root}/copy of%20é"
    assert source.clone(copy).num_copied_files == 3
    assert poured == []
    found = DeltaLog.for_path(copy, options).to_arrow()["id"].to_pylist()
    assert sorted(found) == list(range(3 * ROWS))


def parquet_of(*ids):
    content = io.BytesIO()
    pq.write_table(pa.table({"id": list(ids)}), content)
    return content.getvalue()


@pytest.mark.parametrize("is_shallow", [True, False])
def test_files_of_parquet_are_cloned_within_the_store(place, poured, is_shallow):
    root, options = place
    files = DeltaLog.for_path(f"{root}/fi les%20", options)
    names = [f"p=a%2520b/{number} é.parquet" for number in range(3)]
    for number, name in enumerate(names):
        put(files, name, parquet_of(number, number + 10))
    put(files, "p=a%2520b/stray.parquet", parquet_of(100))
    committed = ({"path": f"{root}/moved/{quote(name)}", "action": "add"} for name in names)
    put(files, "_spark_metadata/0", "\n".join(["v1", *map(json.dumps, committed)]).encode())
    given = {"source_format": "parquet", "partition_columns": [Column("p", "string")]}
    done = files.clone(f"{root}/clone", is_shallow=is_shallow, **given)
    assert done.source_num_of_files == 3
    log = DeltaLog.for_path(f"{root}/clone", options)
    assert sorted(log.to_arrow("p = 'a%20b'")["id"].to_pylist()) == [0, 1, 2, 10, 11, 12]
    assert poured == []
    with pytest.raises(OptimistError) as caught:
        files.clone(f"{root}/fi les%20/clone", is_shallow=is_shallow, **given)
    assert caught.value.kind == "OPTIMIST_TABLE_WITHIN_DIRECTORY"


def test_what_the_store_refuses_to_copy_is_read_and_written(place, poured, monkeypatch):
    root, options = place
    source = source_at(root, options)
    monkeypatch.setattr(copied_file, "_MOST_BYTES_AT_ONCE", 0)
    source.clone(f"{root}/copy")
    assert len(poured) == 3
    assert DeltaLog.for_path(f"{root}/copy", options).count() == 3 * ROWS


def test_a_copy_to_another_place_is_read_and_written(place, poured, tmp_path):
    root, options = place
    source = source_at(root, options)
    source.clone(str(tmp_path / "copy"))
    assert len(poured) == 3
    assert DeltaLog.for_path(str(tmp_path / "copy")).count() == 3 * ROWS


@pytest.mark.sample(3)
def test_a_source_that_is_gone_or_another_is_an_error_and_leaves_no_copy(place):
    root, options = place
    source = source_at(root, options)
    name = source.snapshot().files["path"].to_pylist()[1]
    put(source, name, b"short")  # in the place of one that the log names
    with pytest.raises(OptimistError) as caught:
        source.clone(f"{root}/copy")
    assert caught.value.kind == "OPTIMIST_DATA_FILE_DIFFERS"
    target = DeltaLog.for_path(f"{root}/copy", options)
    assert not target.table_exists()
    assert len(objects_below(target)) <= 2
    filesystem, inner = copied_file.filesystem_for(
        f"{source.table_path}/{name}", source.table.data_access()
    )
    filesystem.delete_file(inner)
    with pytest.raises(OptimistError) as caught:
        source.clone(f"{root}/copy")
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"
    assert not target.table_exists()
