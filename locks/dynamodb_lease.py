"""Leases in a DynamoDB table, by conditional writes (design section 4).

*Assumes* one table in one region for all who compete, and that their clocks differ by no more than
`optimist.store.dynamodb.maxClockSkewSeconds` (10 s): DynamoDB has no clock to go by.

*Provides* one holder per name at a time: a holder stops at its deadline by its own clock, and
another takes over only when the deadline plus the allowed skew has passed by its clock. Fencing
numbers grow for as long as the item lives; nothing here deletes it.

*Does not provide* one holder where clocks differ by more than that. The fencing number and the
store's own exclusion are what holds then.

*Excludes* other Optimist writers set to the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from optimist.core.clock import Clock, SystemClock
from optimist.core.errors import StorageError
from optimist.core.lease import Lease, LeaseGrant, lapsed
from optimist.locks.dynamodb_options import DynamoDBOptions
from optimist.locks.dynamodb_table import (
    SDK_ERRORS,
    DynamoDBTable,
    TableShape,
    code_of,
    dynamodb_error,
    is_unanswered,
    new_client,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

__all__ = ["DynamoDBLease"]

_NAMES = {"#owner": "owner", "#deadline": "deadlineMs"}
_CONDITION_FAILED = "ConditionalCheckFailedException"


class DynamoDBLease(Lease):
    """One item per name: `leaseName`, `fencingNumber`, and while held `owner` and `deadlineMs`.

    Args:
        options: See `DynamoDBOptions`; the table is `optimist.store.dynamodb.leaseTable`.
        clock: By which leases lapse.
        client: A client to use instead of one made from the options; its retries must be off.
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
        self._clock: Clock = clock or SystemClock()
        self._table = DynamoDBTable(
            TableShape(self._parsed.lease_table, "leaseName"),
            client or new_client(self._parsed),
            clock=self._clock,
            creates=self._parsed.creates_tables,
        )

    def try_acquire(self, name: str, *, ttl_s: float) -> LeaseGrant | None:
        """See `Lease.try_acquire`; one conditional update, sent once.

        Without an answer the item is read back: the owner in it tells.
        """
        self._table.ensure_ready()  # before the time is taken: a table may take long to be made
        owner = self._clock.new_uuid()
        now_ms = self._clock.now_ms()
        deadline_ms = now_ms + round(ttl_s * 1000)
        limit_ms = now_ms - round(self._parsed.max_clock_skew_s * 1000)
        try:
            number = self._table.send(
                lambda client: _take(client, self._item(name), owner, deadline_ms, limit_ms)
            )
        except SDK_ERRORS as error:
            if code_of(error) == _CONDITION_FAILED:
                return None
            doing = f"take the lease on {name}"
            if not is_unanswered(error):
                raise dynamodb_error(error, doing=doing) from error
            item = self._read(name, doing)
            if _owner_of(item) != owner:
                return None
            number = int(item["fencingNumber"]["N"])
        return LeaseGrant(name, owner, number, deadline_ms)

    def renew(self, grant: LeaseGrant, *, ttl_s: float) -> LeaseGrant:
        """See `Lease.renew`."""
        now_ms = self._clock.now_ms()
        deadline_ms = now_ms + round(ttl_s * 1000)
        self._change(
            grant,
            "SET #deadline = :deadline",
            "#owner = :owner AND #deadline > :now",
            {":deadline": {"N": str(deadline_ms)}, ":now": {"N": str(now_ms)}},
        )
        return replace(grant, deadline_ms=deadline_ms)

    def release(self, grant: LeaseGrant) -> None:
        """See `Lease.release`; the item stays, with the number."""
        condition = "#owner = :owner AND attribute_exists(#deadline)"
        try:
            self._change(grant, "REMOVE #owner, #deadline", condition, {})
        except StorageError as error:
            if error.kind != "OPTIMIST_LEASE_LAPSED":
                raise

    def ensure_held(self, grant: LeaseGrant) -> None:
        """See `Lease.ensure_held`; reads the item, strongly consistent."""
        item = self._read(grant.name, f"look at the lease on {grant.name}")
        is_ours = _owner_of(item) == grant.owner
        if not is_ours or self._clock.now_ms() >= int(item["deadlineMs"]["N"]):
            raise lapsed(grant)

    def describe(self) -> Mapping[str, str]:
        """See `Lease.describe`."""
        return {
            **super().describe(),
            "table": self._parsed.lease_table,
            "region": self._parsed.region,
            "excludes": "Optimist writers set to the same table",
        }

    def _item(self, name: str) -> dict[str, Any]:
        return {"TableName": self._table.shape.name, "Key": {"leaseName": {"S": name}}}

    def _read(self, name: str, doing: str) -> Mapping[str, Any]:
        answer = self._table.ask(
            lambda client: client.get_item(**self._item(name), ConsistentRead=True), doing=doing
        )
        return answer.get("Item", {})

    def _change(
        self, grant: LeaseGrant, update: str, condition: str, values: Mapping[str, Any]
    ) -> None:
        try:
            self._table.ask(
                lambda client: client.update_item(
                    **self._item(grant.name),
                    UpdateExpression=update,
                    ConditionExpression=condition,
                    ExpressionAttributeNames=_NAMES,
                    ExpressionAttributeValues={":owner": {"S": grant.owner}, **values},
                ),
                doing=f"change the lease on {grant.name}",
            )
        except StorageError as error:
            if error.fields.get("code") == _CONDITION_FAILED:
                raise lapsed(grant) from error
            raise


def _take(
    client: DynamoDBClient, item: Mapping[str, Any], owner: str, deadline_ms: int, limit_ms: int
) -> int:
    answer = client.update_item(
        **item,
        UpdateExpression="SET #owner = :owner, #deadline = :deadline ADD fencingNumber :one",
        ConditionExpression="attribute_not_exists(#owner) OR #deadline <= :limit",
        ExpressionAttributeNames=_NAMES,
        ExpressionAttributeValues={
            ":owner": {"S": owner},
            ":deadline": {"N": str(deadline_ms)},
            ":limit": {"N": str(limit_ms)},
            ":one": {"N": "1"},
        },
        ReturnValues="UPDATED_NEW",
    )
    return int(answer["Attributes"]["fencingNumber"]["N"])


def _owner_of(item: Mapping[str, Any]) -> str | None:
    found: str | None = item.get("owner", {}).get("S")
    return found
