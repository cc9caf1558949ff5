"""The pages of stores and locks name every option that they have, and none that they have not."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from optimist.core.options.fields import own_keys
from optimist.locks.dynamodb_options import DELTA_PREFIX, DynamoDBOptions
from optimist.locks.file_lease import FileLeaseOptions
from optimist.locks.redis_server import RedisOptions
from optimist.locks.sql_arbiter import SQLOptions
from optimist.logstores.azure.options import AzureOptions
from optimist.logstores.gcs.options import GCSOptions
from optimist.logstores.hdfs.options import HDFSOptions
from optimist.logstores.s3.arbiter import S3ArbiterOptions

DOCS = Path(__file__).parents[1] / "docs"
TABLES = {
    "azure": ("azure.md", AzureOptions, "| own key, after `optimist.store.azure.`"),
    "dynamodb": ("locks.md", DynamoDBOptions, "### DynamoDB"),
    "gcs": ("gcs.md", GCSOptions, "| own key, after `optimist.store.gcs.`"),
    "redis": ("locks.md", RedisOptions, "| `spark.optimist.store.redis.<key>`"),
    "sql": ("locks.md", SQLOptions, "| `spark.optimist.store.sql.<key>`"),
}
IN_PROSE = {
    "file-lease": ("locks.md", FileLeaseOptions),
    "hdfs": ("hdfs.md", HDFSOptions),
    "s3arbiter": ("s3.md", S3ArbiterOptions),
}


def rows_of(page, heading):
    """The first cells of the table at or below a line: names of options, and Delta's own."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    below = lines[next(n for n, line in enumerate(lines) if line.startswith(heading)) :]
    first = next(n for n, line in enumerate(below) if line.startswith("|---"))
    for line in below[first + 1 :]:
        if not line.startswith("|"):
            return
        yield line.strip("|").split("|")[0]


def named_in(cells):
    return {
        name.removeprefix("secret.") for cell in cells for name in re.findall(r"`([^`]+)`", cell)
    }


def foreign_keys(cls):
    return {key for row in fields(cls) for key in row.metadata.get("foreign", ())}


@pytest.mark.parametrize("room", TABLES)
def test_the_table_of_a_page_has_every_option_of_its_store_or_lock_and_no_other(room):
    page, cls, heading = TABLES[room]
    cells = [cell for cell in rows_of(page, heading) if not cell.strip().startswith("Delta's")]
    assert named_in(cells) == set(own_keys(cls))


@pytest.mark.parametrize("room", IN_PROSE)
def test_an_option_without_a_table_is_named_in_full(room):
    page, cls = IN_PROSE[room]
    text = (DOCS / page).read_text(encoding="utf-8")
    for key in own_keys(cls):
        assert f"optimist.store.{room}.{key}" in text


def test_keys_of_delta_for_dynamodb_have_their_rows():
    cells = [cell for cell in rows_of("locks.md", "### DynamoDB") if "Delta's" in cell]
    shown = named_in(cells) - {"credentials.provider"}
    full = {f"provisionedThroughput{key}" if key.startswith(".") else key for key in shown}
    assert full == foreign_keys(DynamoDBOptions)
    assert DELTA_PREFIX in (DOCS / "locks.md").read_text(encoding="utf-8")


def test_keys_of_hadoop_for_google_stand_in_the_page():
    text = (DOCS / "gcs.md").read_text(encoding="utf-8")
    keys = {key for key in foreign_keys(GCSOptions) if key.startswith("fs.gs.")}
    assert {key for key in keys if f"`{key}`" in text} == keys
