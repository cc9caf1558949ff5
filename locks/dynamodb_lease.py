"""Leases in a DynamoDB table, by conditional writes (docs/locks.md).

*Assumes* one table in one region for all competitors, and that their clocks differ by no more than
`optimist.store.dynamodb.maxClockSkewSeconds` (10 s): DynamoDB offers no clock.

*Provides* one holder per name at a time: a holder stops at its deadline by its own clock, and
another takes over only when the deadline plus the allowed skew has passed by its clock. Fencing
numbers grow as long as the item exists, and this class never deletes it.

*Does not provide* one holder if clocks differ by more. Then only the fencing number and the store's
own exclusion protect the log.

*Excludes* other Optimist writers set to the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from optimist.core.errors import OptimistError, StorageError
from optimist.core.errors.kinds import LEASE_LAPSED
from optimist.core.plugins.lease import Lease, LeaseGrant, lapsed
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
from optimist.locks.lease_state import LeaseState, damaged_lease, parse_lease

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

__all__ = ["DynamoDBLease"]

_NAMES = {"#owner": "owner", "#deadline": "deadlineMs"}


class DynamoDBLease(Lease):
    """One item per name: `leaseName`, `fencingNumber`, and while held `owner` and `deadlineMs`.

    Args:
        options: See `DynamoDBOptions`; the table is `optimist.store.dynamodb.leaseTable`.
        clock: The clock by which leases lapse.
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
        self._clock: Clock = clock or SystemClock()
        self._table = DynamoDBTable(
            TableShape(self._parsed.lease_table, "leaseName"),
            self._parsed,
            clock=self._clock,
            client=client,
        )

    def try_acquire(self, name: str, *, ttl_s: float) -> LeaseGrant | None:
        """See `Lease.try_acquire`.

        It sends one conditional update, once.

        If no answer comes, the item is read back, and its owner shows whether we took it.
        """
        self._table.ensure_ready()  # before the time is read: creating a table may take long
        owner = self._clock.new_uuid()
        now_ms = self._clock.now_ms()
        deadline_ms = now_ms + round(ttl_s * 1000)
        # The holder's clock may be behind ours by that much, so it may still use its lease.
        limit_ms = now_ms - round(self._parsed.max_clock_skew_s * 1000)
        try:
            item = self._table.send(
                lambda client: _take_lease(
                    client, self._item_key(name), owner, deadline_ms, limit_ms
                )
            )
        except OptimistError:  # not sent
            raise
        except Exception as error:
            if code_of(error) == CONDITION_FAILED:
                # Somebody holds it. A damaged item raises here: waiting for it would not help.
                self._parse_state(name, _item_in_the_way(error))
                return None
            doing = f"take the lease on {name}"
            if not is_unanswered(error):
                raise dynamodb_error(error, doing=doing) from error
            item = self._read_item(name, doing)
        state = self._parse_state(name, item)
        return state.grant(name) if state.owner == owner else None

    def renew(self, grant: LeaseGrant, *, ttl_s: float) -> LeaseGrant:
        """See `Lease.renew`."""
        now_ms = self._clock.now_ms()
        deadline_ms = now_ms + round(ttl_s * 1000)
        self._update_held(
            grant,
            "SET #deadline = :deadline",
            "#owner = :owner AND #deadline > :now",
            {":deadline": {"N": str(deadline_ms)}, ":now": {"N": str(now_ms)}},
        )
        return replace(grant, deadline_ms=deadline_ms)

    def release(self, grant: LeaseGrant) -> None:
        """See `Lease.release`.

        The item stays, with the number.
        """
        condition = "#owner = :owner AND attribute_exists(#deadline)"
        try:
            self._update_held(grant, "REMOVE #owner, #deadline", condition, {})
        except StorageError as error:
            if error.kind != LEASE_LAPSED:
                raise

    def ensure_held(self, grant: LeaseGrant) -> None:
        """See `Lease.ensure_held`.

        It reads the item, strongly consistent.
        """
        item = self._read_item(grant.name, f"look at the lease on {grant.name}")
        state = self._parse_state(grant.name, item)
        if not state.is_held_by(grant, self._clock.now_ms()):
            raise lapsed(grant)

    def describe(self) -> Mapping[str, str]:
        """See `Lease.describe`."""
        return {
            **super().describe(),
            "table": self._parsed.lease_table,
            "region": self._parsed.region,
            "excludes": "Optimist writers set to the same table",
        }

    def _item_key(self, name: str) -> dict[str, Any]:
        return {"TableName": self._table.shape.name, "Key": {"leaseName": {"S": name}}}

    def _read_item(self, name: str, doing: str) -> Mapping[str, Any]:
        answer = self._table.ask(
            lambda client: client.get_item(**self._item_key(name), ConsistentRead=True), doing=doing
        )
        return answer.get("Item", {})

    def _parse_state(self, name: str, item: Mapping[str, Any]) -> LeaseState:
        """Parse a record of any writer, where a missing record means a free lease.

        Raises:
            StorageError: The record is not a lease (kind `OPTIMIST_LEASE_DAMAGED`).
        """
        if not item:
            return LeaseState()
        try:
            return parse_lease({key: plain_value(value) for key, value in item.items()})
        except ValueError as error:
            where = f"the DynamoDB table {self._table.shape.name}"
            raise damaged_lease(name, where, str(error)) from None

    def _update_held(
        self, grant: LeaseGrant, update: str, condition: str, values: Mapping[str, Any]
    ) -> None:
        try:
            self._table.ask(
                lambda client: client.update_item(
                    **self._item_key(grant.name),
                    UpdateExpression=update,
                    ConditionExpression=condition,
                    ExpressionAttributeNames=_NAMES,
                    ExpressionAttributeValues={":owner": {"S": grant.owner}, **values},
                ),
                doing=f"change the lease on {grant.name}",
            )
        except StorageError as error:
            if error.fields.get("code") == CONDITION_FAILED:
                raise lapsed(grant) from error
            raise


def _take_lease(
    client: DynamoDBClient, item: Mapping[str, Any], owner: str, deadline_ms: int, limit_ms: int
) -> Mapping[str, Any]:
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
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )
    return answer["Attributes"]


def _item_in_the_way(error: Exception) -> Mapping[str, Any]:
    """Return the item on which a condition failed, if the server returns it."""
    item: Mapping[str, Any] = getattr(error, "response", {}).get("Item") or {}
    return item
