"""Entries in a DynamoDB table, as delta-storage's `S3DynamoDBLogStore` keeps them (spec 4).

*Assumes* one table in one region for all writers, and the same spelling of a table's path, to the
byte, by all of them. DynamoDB's conditional puts and strongly consistent reads work as AWS
documents.

*Provides* one owner per file, even if clients crash; reads that see every write that has returned;
entries that delta-spark and delta-rs read, complete and create, and theirs for us.

*Does not provide* expiry: entries get `expireTime` once complete, and the table's owner may use it
as the TTL attribute; this class deletes no entry. It does not support global tables written in two
regions: there the last writer wins, and exclusion is lost.

*Excludes* other Optimist writers, delta-spark with `S3DynamoDBLogStore`, and those releases of
delta-rs that know `AWS_S3_LOCKING_PROVIDER=dynamodb` (its 1.6 for Python ignores it), as far as all
of them are set to this table.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from optimist.core.errors import OptimistError, StorageError
from optimist.core.errors.kinds import ARBITER_ENTRY_DAMAGED
from optimist.core.plugins.arbiter import Arbiter, CommitEntry, parse_commit_entry
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.locks.dynamodb_options import DynamoDBOptions
from optimist.locks.dynamodb_table import (
    CONDITION_FAILED,
    DynamoDBTable,
    TableShape,
    code_of,
    dynamodb_error,
    is_unanswered,
    plain_value,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

__all__ = ["DynamoDBArbiter"]

_LOG = logging.getLogger(__name__)

_IS_NEW = "attribute_not_exists(tablePath) AND attribute_not_exists(fileName)"


class DynamoDBArbiter(Arbiter):
    """One item per entry: `tablePath`, `fileName`, `tempPath`, `complete`, `expireTime`.

    Args:
        options: See `DynamoDBOptions`.
        clock: Paces retries and the wait for a table that is being created.
        client: A client to use instead of one from the options; its retries must be off.
    """

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        *,
        clock: Clock | None = None,
        client: DynamoDBClient | None = None,
    ) -> None:
        super().__init__(options)
        self._parsed = DynamoDBOptions.from_options(self.options)
        self.entry_ttl_s = self._parsed.ttl_s
        shape = TableShape(
            self._parsed.table_name,
            "tablePath",
            "fileName",
            (self._parsed.read_capacity, self._parsed.write_capacity),
        )
        self._table = DynamoDBTable(
            shape, self._parsed, clock=clock or SystemClock(), client=client
        )

    def create(self, entry: CommitEntry) -> PutOutcome:
        """See `Arbiter.create`.

        1. Put the item once, on the condition that no item has its key. The SDK does not retry,
           because a second try would find the item of a successful first.
        2. If the condition fails, the answer holds the existing item. If it has our `tempPath`, it
           is ours.
        3. If no answer comes, the outcome is `UNKNOWN`.
        """
        item = _item_of(entry)
        try:
            self._table.send(
                lambda client: client.put_item(
                    TableName=self._table.shape.name,
                    Item=item,
                    ConditionExpression=_IS_NEW,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            )
        except OptimistError:  # not sent
            raise
        except Exception as error:
            if code_of(error) == CONDITION_FAILED:
                return self._judge_winner(entry, error)
            if is_unanswered(error):
                _LOG.warning(
                    "DynamoDB did not say whether the entry of %s was created.", entry.file_name
                )
                return PutOutcome.UNKNOWN
            doing = f"create the entry of {entry.file_name}"
            raise dynamodb_error(error, doing=doing, outcome="Nothing was committed.") from error
        return PutOutcome.CREATED

    def get(self, table_path: str, file_name: str) -> CommitEntry | None:
        """See `Arbiter.get`.

        The read is strongly consistent.
        """
        answer = self._table.ask(
            lambda client: client.get_item(
                TableName=self._table.shape.name,
                Key=_key_of(table_path, file_name),
                ConsistentRead=True,
            ),
            doing=f"read the entry of {file_name}",
        )
        item = answer.get("Item")
        return None if item is None else self._entry_of(item, table_path, file_name)

    def latest(self, table_path: str) -> CommitEntry | None:
        """See `Arbiter.latest`.

        It reads one item, strongly consistent.
        """
        items = self._table.ask(
            lambda client: client.query(
                TableName=self._table.shape.name,
                KeyConditionExpression="tablePath = :table",
                ExpressionAttributeValues={":table": {"S": table_path}},
                ScanIndexForward=False,
                Limit=1,
                ConsistentRead=True,
            )["Items"],
            doing=f"read the newest entry of {table_path}",
        )
        for item in items:
            return self._entry_of(item, table_path, str(plain_value(item.get("fileName"))))
        return None

    def complete(self, entry: CommitEntry) -> None:
        """See `Arbiter.complete`.

        It is an update on the condition that `tempPath` is the same.
        """
        try:
            self._table.ask(
                lambda client: _update_complete(client, self._table.shape.name, entry),
                doing=f"mark the entry of {entry.file_name} as complete",
            )
        except StorageError as error:
            if error.fields.get("code") != CONDITION_FAILED:
                raise
            _LOG.warning(
                "The entry of %s is gone, or belongs to another writer; it was left as it is.",
                entry.file_name,
            )

    def describe(self) -> Mapping[str, str]:
        """See `Arbiter.describe`."""
        return {
            **super().describe(),
            "table": self._parsed.table_name,
            "region": self._parsed.region,
            "excludes": "Optimist, delta-spark and deltalake writers set to the same table",
        }

    def _entry_of(self, item: Mapping[str, Any], table_path: str, file_name: str) -> CommitEntry:
        """Parse an item of any writer, which may lack `expireTime` or have more attributes."""
        fields = {
            name: plain_value(item[name])
            for name in ("tempPath", "complete", "expireTime")
            if name in item
        }
        return parse_commit_entry(
            fields,
            table_path=table_path,
            file_name=file_name,
            keeper=f"the DynamoDB table {self._parsed.table_name}",
        )

    def _judge_winner(self, entry: CommitEntry, error: Exception) -> PutOutcome:
        item: Any = error.response.get("Item") if isinstance(error, ClientError) else None
        if item is not None:
            winner = self._entry_of(item, entry.table_path, entry.file_name)
        else:  # a server that does not return the existing item
            try:
                found = self.get(entry.table_path, entry.file_name)
            except StorageError as failure:
                if failure.kind == ARBITER_ENTRY_DAMAGED:
                    raise  # a damaged entry is not ours: ours was not created
                return PutOutcome.UNKNOWN
            if found is None:
                return PutOutcome.UNKNOWN
            winner = found
        is_ours = winner.temp_path == entry.temp_path
        return PutOutcome.CREATED if is_ours else PutOutcome.EXISTS


def _update_complete(client: DynamoDBClient, table: str, entry: CommitEntry) -> None:
    values: dict[str, Any] = {":temp": {"S": entry.temp_path}, ":true": {"S": "true"}}
    update = "SET #complete = :true"
    if entry.expire_time_s is not None:
        values[":expire"] = {"N": str(entry.expire_time_s)}
        update += ", expireTime = :expire"
    client.update_item(
        TableName=table,
        Key=_key_of(entry.table_path, entry.file_name),
        UpdateExpression=update,
        ConditionExpression="tempPath = :temp",
        ExpressionAttributeNames={"#complete": "complete"},
        ExpressionAttributeValues=values,
    )


def _key_of(table_path: str, file_name: str) -> dict[str, Any]:
    return {"tablePath": {"S": table_path}, "fileName": {"S": file_name}}


def _item_of(entry: CommitEntry) -> dict[str, Any]:
    item = {
        **_key_of(entry.table_path, entry.file_name),
        "tempPath": {"S": entry.temp_path},
        "complete": {"S": "true" if entry.complete else "false"},
    }
    if entry.expire_time_s is not None:
        item["expireTime"] = {"N": str(entry.expire_time_s)}
    return item
