"""Writers of other engines: one that speaks the DynamoDB protocol, and one that asks nobody.

`DynamoDBWriter` follows the steps of the protocol as Delta's own store takes them (spec 4.4, 4.5),
with what S3A's "create without overwrite" is: a look whether the file is there, and then a PUT
without a condition. It can be told to die before any step.
"""

from __future__ import annotations

import enum
import json
import uuid
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

__all__ = ["DynamoDBWriter", "Step", "VersionTakenError", "WriterDiedError", "commit_of"]

_FIX_TRIES = 4


class Step(enum.Enum):
    """The steps of a write, in order."""

    LOOK = "look whether the file is there"
    PREDECESSOR = "see to the commit before"
    STAGE = "write the staged file"
    CLAIM = "create the entry"
    COPY = "copy the staged file"
    COMPLETE = "mark the entry complete"


class VersionTakenError(Exception):
    """Another writer has the version."""


class WriterDiedError(Exception):
    """The planned death: nothing after it happened."""


def commit_of(name: str, *, engine: str = "Apache-Spark/4.0 Delta-Lake/4.4") -> bytes:
    """A blind append of one file as another engine writes it; `name` is also its `txnId`."""
    info = {"txnId": name, "operation": "WRITE", "engineInfo": engine, "isBlindAppend": True}
    add = {
        "path": name,
        "partitionValues": {},
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
    }
    lines = ({"commitInfo": {"timestamp": 1, "operationParameters": {}, **info}}, {"add": add})
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


@dataclass(frozen=True)
class DynamoDBWriter:
    """A writer of one table.

    Attributes:
        s3: A boto3 client.
        dynamodb: A boto3 client.
        entries: The DynamoDB table.
        bucket: The bucket.
        table: The key of the table's root.
        scheme: How it spells the table's path.
    """

    s3: Any
    dynamodb: Any
    entries: str
    bucket: str
    table: str
    scheme: str = "s3a"

    def append(self, name: str) -> int:
        """Commit one file at the next version that is free; the version."""
        while True:
            version = self.latest_version() + 1
            try:
                self.write(version, commit_of(name))
            except VersionTakenError:
                continue
            return version

    def write(self, version: int, data: bytes, *, dies_before: Step | None = None) -> None:
        """Commit these bytes as a version.

        Raises:
            VersionTakenError: Another has it.
            WriterDiedError: As planned.
        """

        def begin(step: Step) -> None:
            if step is dies_before:
                raise WriterDiedError(step.value)

        name = _name(version)
        begin(Step.LOOK)
        if self._exists(name):
            raise VersionTakenError(name)
        begin(Step.PREDECESSOR)
        self._see_to_predecessor(version)
        begin(Step.STAGE)
        staged = f".tmp/{name}.{uuid.uuid4()}"
        self._put(staged, data)
        begin(Step.CLAIM)
        self._claim(name, staged)
        begin(Step.COPY)
        self._copy(staged, name)
        begin(Step.COMPLETE)
        self._complete(name, staged)

    def overwrite(self, version: int, data: bytes) -> None:
        """Put a commit without asking anybody, as Spark's default store can."""
        self._put(_name(version), data)

    def latest_version(self) -> int:
        """The newest version in a listing; what another left behind is finished first (4.6)."""
        answer = self.dynamodb.query(
            TableName=self.entries,
            KeyConditionExpression="tablePath = :table",
            ExpressionAttributeValues={":table": {"S": self._table_path}},
            ScanIndexForward=False,
            Limit=1,
            ConsistentRead=True,
        )
        for item in answer["Items"]:
            self.fix(item)
        pages = self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=f"{self.table}/_delta_log/0"
        )
        names = (item["Key"] for page in pages for item in page.get("Contents", []))
        return max(
            (int(key[-25:-5]) for key in names if key.endswith(".json")),
            default=-1,
        )

    def fix(self, item: dict[str, Any]) -> None:
        """Finish the commit of an entry (4.5)."""
        if item["complete"]["S"] == "true":
            return
        name, staged = item["fileName"]["S"], item["tempPath"]["S"]
        for attempt in range(_FIX_TRIES):
            try:
                if not self._exists(name):
                    self._copy(staged, name)
                self._complete(name, staged)
            except ClientError:
                if attempt == _FIX_TRIES - 1:
                    raise
            else:
                return

    def entry(self, version: int) -> dict[str, Any] | None:
        """The entry of a version."""
        answer = self.dynamodb.get_item(
            TableName=self.entries, Key=self._key(_name(version)), ConsistentRead=True
        )
        found: dict[str, Any] | None = answer.get("Item")
        return found

    @property
    def _table_path(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.table}"

    def _see_to_predecessor(self, version: int) -> None:
        if version == 0:
            return
        before = self.entry(version - 1)
        if before is not None and before["complete"]["S"] != "true":
            self.fix(before)
        elif not self._exists(_name(version - 1)):
            raise RuntimeError(f"version {version - 1} is missing")

    def _claim(self, name: str, staged: str) -> None:
        item = {**self._key(name), "tempPath": {"S": staged}, "complete": {"S": "false"}}
        try:
            self.dynamodb.put_item(
                TableName=self.entries,
                Item=item,
                Expected={"fileName": {"Exists": False}},
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            raise VersionTakenError(name) from error

    def _copy(self, staged: str, name: str) -> None:
        """Look, then put without a condition."""
        if not self._exists(name):
            found = self.s3.get_object(Bucket=self.bucket, Key=self._log_key(staged))
            self._put(name, found["Body"].read())

    def _complete(self, name: str, staged: str) -> None:
        """The whole item anew, without a condition."""
        item = {**self._key(name), "tempPath": {"S": staged}, "complete": {"S": "true"}}
        item["expireTime"] = {"N": "4000000000"}
        self.dynamodb.put_item(TableName=self.entries, Item=item)

    def _exists(self, name: str) -> bool:
        try:
            self.s3.head_object(Bucket=self.bucket, Key=self._log_key(name))
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
                raise
            return False
        return True

    def _put(self, name: str, data: bytes) -> None:
        self.s3.put_object(Bucket=self.bucket, Key=self._log_key(name), Body=data)

    def _log_key(self, name: str) -> str:
        return f"{self.table}/_delta_log/{name}"

    def _key(self, name: str) -> dict[str, Any]:
        return {"tablePath": {"S": self._table_path}, "fileName": {"S": name}}


def _name(version: int) -> str:
    return f"{version:020d}.json"
