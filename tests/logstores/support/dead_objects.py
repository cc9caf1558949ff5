"""Tables on S3 of which many files are dead, and what VACUUM asks of the store for them."""

import copy
from collections import Counter
from dataclasses import replace

import pyarrow as pa
from moto.s3.models import s3_backends

from optimist.core import DeltaLog
from optimist.core.log.file_table import add_files
from optimist.core.transaction.conflicts.operations import Operation

UNCHECKED = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}


def table_half_dead(server, bucket, num_files):
    """A table of which every other file is dead; the objects are put past the service."""
    server.client().create_bucket(Bucket=bucket)
    log = DeltaLog.for_path(f"s3a://{bucket}/table", {**options(server), **UNCHECKED})
    log.append(pa.table({"id": [1]}))
    [file] = add_files(log.snapshot().files)
    live = [replace(file, path=name(number)) for number in range(1, num_files, 2)]
    log.start_transaction().commit(live, Operation.write("Append"))
    keys = objects(bucket)
    [first] = (keys[key] for key in keys if key.endswith(file.path))
    for number in range(num_files):
        each = copy.copy(first)
        each.name = f"table/{name(number)}"
        keys[each.name] = each
    return log


def requests_of(server, work):
    """How many requests of each kind the service gets meanwhile."""
    with server.counting() as made:
        work()
    return Counter(kind(*each) for each in made)


def kind(method, path, query):
    is_listing = method == "GET" and "list-type" in query
    of_log = "_delta_log" in query or "_optimist_intents" in query
    if is_listing and not of_log:
        return "list files"
    return "delete many" if method == "POST" else "other"


def options(server):
    return {
        "delta.logStore.s3a.impl": "s3",
        "fs.s3a.endpoint": server.url,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.access.key": "test",
        "fs.s3a.secret.key": "test",
        # A request that a busy machine answers late is not to be sent again, and counted twice.
        "optimist.storage.budgetSeconds": "7200",
        "optimist.store.s3.readTimeoutSeconds": "600",
    }


def objects(bucket):
    [found] = (
        backend.buckets[bucket].keys
        for account in s3_backends.values()
        for backend in account.values()
        if bucket in backend.buckets
    )
    return found


def name(number):
    return f"part-{number:09}-9b1d3f0e-7c51-4a37-8f0a-000000000000.parquet"
