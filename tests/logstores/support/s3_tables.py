"""Commits and tables on S3 for tests, written through the store or round it."""

from optimist.core.protocol.actions import AddFile, Metadata
from optimist.core.transaction.conflicts.operations import Operation

BY_S3 = {"spark.delta.logStore.s3.impl": "optimist.logstores.s3:S3LogStore"}
SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'


def commit(log, version):
    return f"{log}/{version:020d}.json"


def info(txn_id, operation="WRITE", engine="another/1.0"):
    return (
        f'{{"commitInfo":{{"txnId":"{txn_id}","operation":"{operation}","engineInfo":"{engine}"}}}}'
        '\n{"remove":{"path":"a","dataChange":true}}\n'
    ).encode()


def put(s3, path, data=b"x"):
    bucket, _, key = path.partition("://")[2].partition("/")
    s3.put_object(Bucket=bucket, Key=key, Body=data)


def create(delta):
    txn = delta.start_transaction()
    txn.update_metadata(Metadata(id="t", schema_string=SCHEMA, partition_columns=()))
    txn.commit([], Operation("CREATE TABLE"))


def append(delta, name):
    add = AddFile(name, {}, size=1, modification_time=1, data_change=True)
    return delta.start_transaction().commit([add], Operation.write("Append"))
