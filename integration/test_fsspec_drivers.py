"""The fsspec drivers that may carry commits, each raced on the emulator of its store.

s3fs pins a botocore of its own, so the drivers are not among the other tests' requirements:
`make test-fsspec`, which is part of `make test`, runs these in an environment without boto3.
"""

import json
from functools import partial

import fsspec
import pytest

from optimist.core import DeltaLog
from optimist.core.protocol.actions import AddFile, Metadata
from optimist.core.testing import LogStoreSuite
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores.fsspec.drivers import EXCLUSIVE_DRIVERS
from optimist.logstores.fsspec.store import FsspecLogStore

SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'


# aiohttp thinks that a large body should be a stream.
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
class DriverSuite(LogStoreSuite):
    has_directories = False
    scheme = ""

    @pytest.fixture(autouse=True)
    def served(self, request, monkeypatch):
        # Without it every client of gcsfs asks Google what kind of bucket it has, for a minute.
        monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        settings = self.settings(request.getfixturevalue)
        options = {
            f"optimist.store.fsspec.{name}": value if isinstance(value, str) else json.dumps(value)
            for name, value in settings.items()
        }
        type(self).store_factory = partial(FsspecLogStore, options)
        self.driver = fsspec.filesystem(self.scheme, skip_instance_cache=True, **settings)

    def settings(self, server):
        raise NotImplementedError

    @pytest.fixture
    def directory(self, fresh_name):
        self.driver.mkdir(fresh_name)
        return f"{self.scheme}://{fresh_name}/table/_delta_log"

    def peek(self, path):
        self.driver.invalidate_cache()
        try:
            return self.driver.cat_file(path)
        except FileNotFoundError:
            return None

    def poke(self, path, data):
        self.driver.pipe_file(path, data)

    def test_driver_is_the_one_that_was_read(self):
        row = next(row for row in EXCLUSIVE_DRIVERS if self.scheme in row.protocols)
        kind = type(self.driver)
        assert row.driver == f"{kind.__module__}:{kind.__qualname__}"
        assert row.is_exclusive

    def test_table_takes_commits_through_the_engine(self, store, directory):
        log = DeltaLog(directory.removesuffix("/_delta_log"), store)
        txn = log.start_transaction()
        txn.update_metadata(Metadata(id="x", schema_string=SCHEMA, partition_columns=()))
        txn.commit([], Operation("CREATE TABLE"))
        for number in range(3):
            add = AddFile(f"{number}.parquet", {}, 1, 1, data_change=True)
            assert log.start_transaction().commit([add], Operation.write("Append")).version > number
        assert "refuses a second creation" in store.describe()["probed"]
        assert len(log.snapshot().files) == 3


class TestS3fsOnLocalStack(DriverSuite):
    scheme = "s3"

    def settings(self, server):
        aws = server("s3_server")
        return {
            "endpoint_url": aws.endpoint,
            "key": aws.access_key_id,
            "secret": aws.secret_access_key,
        }


class TestAdlfsOnAzurite(DriverSuite):
    scheme = "abfs"

    def settings(self, server):
        return {"connection_string": server("azure_server").connection_string}


class TestGcsfsOnFakeServer(DriverSuite):
    scheme = "gs"

    def settings(self, server):
        return {"endpoint_url": server("gcs_server").endpoint, "token": "anon", "project": "test"}
