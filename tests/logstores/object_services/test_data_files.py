"""Data files are found and removed by the store's own client: Arrow's can end the process."""

import pytest

from optimist.core.data.parquet.parquet_writer import delete_files
from optimist.core.data.storage.stored_files import (
    files_below,
    names_in,
    remove_directory,
    remove_file,
)
from optimist.core.data.storage.unreadable_files import whole_copy
from optimist.core.errors import StorageError
from optimist.core.protocol.actions import AddFile
from scripted_http import LOST, Reply

NAMES = ("a.parquet", "a/1.parquet", "a/b/2.parquet", "a-1", "p=%20x/3.parquet", "z")
OWN_CLIENTS = ("azsdk-python", "gcloud-python", "gl-python", "python-requests")


@pytest.fixture
def table(kind, service, store):
    service.page_size = 2  # so that there are several pages
    for name in NAMES:
        service.put(f"t/{name}", b"rows")
    service.put("t/", b"")  # what others leave for a directory
    service.put("t2/other", b"rows")
    table = kind.url("t")
    access = store.data_access(table)
    service.requests.clear()
    return table, access


def test_files_are_found_at_any_depth_on_all_pages(table):
    path, access = table
    found = {status.path: status.size_bytes for status in files_below(path, access)}
    assert found == {f"{path}/{name}": 4 for name in NAMES}
    assert [status.name for status in files_below(f"{path}/a/", access)] == [
        "1.parquet",
        "2.parquet",
    ]
    assert list(files_below(f"{path}/missing", access)) == []


def test_names_are_those_of_files_and_directories(table):
    path, access = table
    assert names_in(path, access) == ["a", "a-1", "a.parquet", "p=%20x", "z"]
    assert names_in(f"{path}/missing", access) == []


def test_removing_is_done_by_the_stores_client_alone(service, table):
    path, access = table
    remove_file(f"{path}/z", access)
    remove_file(f"{path}/z", access)  # gone already
    remove_directory(f"{path}/a", access)
    gone = AddFile("p=%2520x/3.parquet", {}, 4, 0, True)
    delete_files(path, [gone], access)
    assert sorted(service.objects) == ["t/", "t/a-1", "t/a.parquet", "t2/other"]
    assert service.requests
    for each in service.requests:
        assert each.headers["User-Agent"].startswith(OWN_CLIENTS)


@pytest.mark.parametrize("code", [403, 404, 409, 500])
def test_an_odd_answer_is_an_error_and_no_end_of_the_process(service, table, code):
    path, access = table
    service.refusal = lambda *_: _bare(code)
    service.script = [(code, "")] * 20
    if code == 404:
        remove_file(f"{path}/z", access)
    else:
        with pytest.raises(StorageError):
            remove_file(f"{path}/z", access)
    service.script = [(code, "")] * 20
    delete_files(path, [AddFile("z", {}, 4, 0, True)], access)


def _bare(code):
    return Reply(code, b"", {"Content-Type": "text/html"})


def test_a_whole_file_is_fetched_by_the_stores_client_which_asks_again(kind, service, store):
    content = bytes(range(256)) * 40
    service.put("t/x", content)
    access = store.data_access(kind.url("t"))
    service.requests.clear()
    service.script = [LOST]
    with whole_copy(kind.url("t/x"), access) as copy:
        assert copy.read() == content
    for each in service.requests:
        assert each.headers["User-Agent"].startswith(OWN_CLIENTS)
