"""One DynamoDB table: its client, its errors, and a check of its existence and keys.

The SDK's retries are off. This module repeats a request that may safely be sent twice, by the Clock
and within the operation's budget. A conditional put is sent once, and a lost answer is reported as
unknown.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
)

from optimist.core.errors import ConfigError, StorageError
from optimist.core.errors.kinds import STORE_BUSY, STORE_NO_ANSWER, STORE_UNREACHABLE
from optimist.core.forking import ForkSafeLock
from optimist.core.runtime.budget import PerTimeout
from optimist.core.runtime.clock import Clock
from optimist.core.runtime.retry import Patience, call_once, call_patiently
from optimist.core.runtime.unsent_requests import was_proxy_unreachable
from optimist.core.runtime.whole_answer import is_whole
from optimist.core.secrets import revealed
from optimist.locks.dynamodb_options import DynamoDBOptions

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

__all__ = [
    "CAUSES_BY_CODE",
    "CONDITION_FAILED",
    "DynamoDBTable",
    "TableShape",
    "code_of",
    "dynamodb_error",
    "is_unanswered",
    "plain_value",
]

_Result = TypeVar("_Result")

_LOG = logging.getLogger(__name__)

_REPEAT = Patience(max_tries=4)
_MAX_POLLS = 20
_POLL_S = 1.0
_TIMEOUT_S = 10.0

CONDITION_FAILED = "ConditionalCheckFailedException"
"""The code of a conditional write whose condition was false, so that nothing was written."""

_RETRYABLE = (STORE_BUSY, STORE_UNREACHABLE, STORE_NO_ANSWER)
CAUSES_BY_CODE: dict[str, tuple[str, str]] = {
    "AccessDeniedException": (
        "OPTIMIST_PERMISSION_DENIED",
        "the credentials lack a permission; they need DescribeTable, CreateTable, GetItem, "
        "PutItem, UpdateItem and Query on the table",
    ),
    "ResourceNotFoundException": (
        "OPTIMIST_LOCK_TABLE_GONE",
        "the table was there before and is gone; find out who deleted it, then restart the process",
    ),
    **dict.fromkeys(
        (
            "ExpiredTokenException",
            "IncompleteSignature",
            "IncompleteSignatureException",
            "InvalidSignatureException",
            "MissingAuthenticationToken",
            "MissingAuthenticationTokenException",
            "UnrecognizedClientException",
        ),
        ("OPTIMIST_INVALID_CREDENTIALS", "the credentials are wrong or have expired; renew them"),
    ),
    **dict.fromkeys(
        (
            "LimitExceededException",
            "ProvisionedThroughputExceededException",
            "RequestLimitExceeded",
            "ThrottlingException",
        ),
        (
            STORE_BUSY,
            "the table gets more requests than its capacity allows; raise the capacity, or wait",
        ),
    ),
}

_NO_ANSWER_IN_TIME = 408
"""A proxy may send it after it has passed the request on."""
_NOT_SENT = (ConnectTimeoutError, EndpointConnectionError)
_NO_CREDENTIALS = (
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
)


@dataclass(frozen=True, slots=True)
class TableShape:
    """The required form of a table: its name, its keys (all text), and its billing.

    Attributes:
        name: The table's name.
        hash_key: The attribute that identifies a partition.
        range_key: The attribute that sorts within a partition; None without one.
        throughput: Read and write units of a table that we create; None pays by the request.
    """

    name: str
    hash_key: str
    range_key: str | None = None
    throughput: tuple[int, int] | None = None

    @property
    def keys(self) -> dict[str, str]:
        """The key attributes and their roles."""
        keys = {self.hash_key: "HASH"}
        return keys if self.range_key is None else {**keys, self.range_key: "RANGE"}


class DynamoDBTable:
    """The sender of requests to one table, which threads may share.

    Before the first request it checks the table, and creates it if it is missing.

    Args:
        shape: The required form of the table.
        options: How to reach it, and whether it may be created.
        clock: Paces retries, and the wait for a table that is being created.
        client: A client to use instead of one from the options; its retries must be off.
    """

    def __init__(
        self,
        shape: TableShape,
        options: DynamoDBOptions,
        *,
        clock: Clock,
        client: DynamoDBClient | None = None,
    ) -> None:
        self.shape = shape
        self._clients = PerTimeout(
            lambda limit_s: _with_clear_answers(client or _new_client(options, limit_s)), _TIMEOUT_S
        )
        self._clock = clock
        self._creates = options.creates_tables
        self._lock = ForkSafeLock()
        self._is_ready = False

    def send(self, request: Callable[[DynamoDBClient], _Result]) -> _Result:
        """Send a request once.

        Raises:
            OptimistError: The table is missing or has another form, or the operation's budget is
                used up; the request was not sent.
            Exception: The SDK's own error, which is any error if it can't read an answer.
        """
        self.ensure_ready()
        return call_once(lambda: request(self._clients.get()), self._clock)

    def ask(self, request: Callable[[DynamoDBClient], _Result], *, doing: str) -> _Result:
        """Send a request that may be sent more than once.

        Args:
            request: Calls the client.
            doing: The action, for messages: `read the entry of ...`.

        Raises:
            StorageError, ConfigError: Every try failed; see `dynamodb_error`.
        """
        self.ensure_ready()
        return self._ask_patiently(request, doing)

    def ensure_ready(self) -> None:
        """Describe the table once, and create it if it is missing.

        Raises:
            ConfigError: The table has other keys, or is missing and may not be created.
            StorageError: The table could not be described or created, or is not ready in time.
        """
        with self._lock:
            if self._is_ready:
                return
            self._ensure_keys(self._describe_or_create())
            self._is_ready = True

    def _ask_patiently(self, request: Callable[[DynamoDBClient], _Result], doing: str) -> _Result:
        return call_patiently(
            lambda: request(self._clients.get()),
            _REPEAT,
            self._clock,
            error_of=partial(dynamodb_error, doing=doing),
        )

    def _describe_or_create(self) -> dict[str, Any]:
        for _ in range(_MAX_POLLS + 1):
            description = self._describe_table()
            if description is None:
                self._create_table()
            elif description["TableStatus"] != "CREATING":
                return description
            self._clock.sleep(_POLL_S)
        raise StorageError(
            f"The DynamoDB table {self.shape.name} is still being created after {_MAX_POLLS} s. "
            "Nothing was written. Run the operation again later.",
            kind="OPTIMIST_LOCK_TABLE_NOT_READY",
            table=self.shape.name,
            retryable=True,
        )

    def _describe_table(self) -> dict[str, Any] | None:
        def request(client: DynamoDBClient) -> dict[str, Any] | None:
            try:
                return dict(client.describe_table(TableName=self.shape.name)["Table"])
            except ClientError as error:
                if code_of(error) == "ResourceNotFoundException":
                    return None
                raise

        return self._ask_patiently(request, f"describe the table {self.shape.name}")

    def _create_table(self) -> None:
        if not self._creates:
            raise ConfigError(
                f"There is no DynamoDB table {self.shape.name}, and creating it is not allowed: "
                "optimist.store.dynamodb.createTables is off. Nothing was written. Create the "
                "table, or name another one.",
                kind="OPTIMIST_LOCK_TABLE_MISSING",
                table=self.shape.name,
            )
        _LOG.info("Creating the DynamoDB table %s.", self.shape.name)
        keys = self.shape.keys
        arguments: dict[str, Any] = {
            "TableName": self.shape.name,
            "AttributeDefinitions": [{"AttributeName": k, "AttributeType": "S"} for k in keys],
            "KeySchema": [{"AttributeName": k, "KeyType": role} for k, role in keys.items()],
            "BillingMode": "PAY_PER_REQUEST",
        }
        if self.shape.throughput is not None:
            read, write = self.shape.throughput
            arguments["BillingMode"] = "PROVISIONED"
            arguments["ProvisionedThroughput"] = {
                "ReadCapacityUnits": read,
                "WriteCapacityUnits": write,
            }

        def request(client: DynamoDBClient) -> None:
            try:
                client.create_table(**arguments)
            except ClientError as error:
                if (
                    code_of(error) != "ResourceInUseException"
                ):  # another writer created it meanwhile
                    raise

        self._ask_patiently(request, f"create the table {self.shape.name}")

    def _ensure_keys(self, description: dict[str, Any]) -> None:
        types = {
            a["AttributeName"]: a["AttributeType"] for a in description["AttributeDefinitions"]
        }
        found = {key["AttributeName"]: key["KeyType"] for key in description["KeySchema"]}
        if found == self.shape.keys and all(types[key] == "S" for key in found):
            return
        wanted = ", ".join(f"{key} {role} S" for key, role in self.shape.keys.items())
        shown = ", ".join(f"{key} {role} {types.get(key)}" for key, role in found.items())
        raise ConfigError(
            f"The DynamoDB table {self.shape.name} has the keys {shown}, and must have {wanted}. "
            "Nothing was written. Name another table.",
            kind="OPTIMIST_LOCK_TABLE_SHAPE",
            table=self.shape.name,
        )


def _new_client(options: DynamoDBOptions, timeout_s: float) -> DynamoDBClient:
    """Make a client with bounded waits and without the SDK's retries.

    Nothing is sent yet.

    Raises:
        ConfigError: The profile does not exist, or the endpoint is not a URL.
    """
    config = Config(
        connect_timeout=timeout_s,
        read_timeout=timeout_s,
        retries={"total_max_attempts": 1, "mode": "standard"},
    )
    try:
        session = boto3.Session(
            aws_access_key_id=revealed(options.access_key_id),
            aws_secret_access_key=revealed(options.secret_access_key),
            aws_session_token=revealed(options.session_token),
            profile_name=options.profile,
            region_name=options.region,
        )
        return session.client("dynamodb", endpoint_url=options.endpoint, config=config)
    except (BotoCoreError, ValueError) as error:
        raise ConfigError(
            f"boto3 can't make a client with these options ({type(error).__name__}). Check "
            "optimist.store.dynamodb.profile, optimist.store.dynamodb.endpoint and the region.",
            kind="OPTIMIST_INVALID_OPTION",
            key="optimist.store.dynamodb",
        ) from None  # the cause may quote the endpoint


def dynamodb_error(error: Exception, *, doing: str, outcome: str = "") -> StorageError:
    """Translate an error of the SDK, by its class and code, never by its text.

    Args:
        error: The SDK's error.
        doing: The action, for the message: `read the entry of ...`.
        outcome: The known outcome, as a sentence.
    """
    code = code_of(error)
    status = _status_of(error)
    if isinstance(error, _NO_CREDENTIALS):
        kind, cause = (
            "OPTIMIST_INVALID_CREDENTIALS",
            "no credentials were found; set them, or a profile",
        )
    elif _was_not_sent(error):
        kind, cause = (
            STORE_UNREACHABLE,
            "the server can't be reached; check the endpoint, the region and the network",
        )
    elif is_unanswered(error):
        kind, cause = STORE_NO_ANSWER, "the server gave no clear answer; try again"
    else:
        kind, cause = CAUSES_BY_CODE.get(
            code, ("OPTIMIST_STORAGE_FAILED", f"the server refused with status {status}")
        )
    return StorageError(
        f"Cannot {doing} in DynamoDB: {cause} ({code}). {outcome}".rstrip(),
        kind=kind,
        code=code,
        retryable=kind in _RETRYABLE,
    )


def is_unanswered(error: Exception) -> bool:
    """Check whether the request may have succeeded although it failed."""
    if isinstance(error, ClientError):
        status = _status_of(error)
        is_open = status >= 500 or status == _NO_ANSWER_IN_TIME
        return is_open and code_of(error) not in CAUSES_BY_CODE
    return not (_was_not_sent(error) or isinstance(error, _NO_CREDENTIALS))


def _was_not_sent(error: Exception) -> bool:
    return isinstance(error, _NOT_SENT) or was_proxy_unreachable(error)


def code_of(error: Exception) -> str:
    """Return the error code of an answer, or the class of an error without one."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", "unknown"))
    return type(error).__name__


def plain_value(attribute: object) -> object:
    """Return the value of a text, number or boolean attribute, or `()` for any other."""
    if not isinstance(attribute, Mapping) or len(attribute) != 1:
        return ()
    name, value = next(iter(attribute.items()))
    return value if name in ("S", "N", "BOOL") else ()


class _UnclearAnswerError(Exception):
    """An answer that looks like success but is not DynamoDB's."""


def _with_clear_answers(client: DynamoDBClient) -> DynamoDBClient:
    client.meta.events.register(
        "before-parse.dynamodb", _ensure_clear, unique_id="optimist-clear-answers"
    )
    return client


def _ensure_clear(response_dict: Mapping[str, Any], **_: object) -> None:
    """Refuse an answer that was cut off, and a success without a JSON object.

    The SDK reads half a `GetItem` as "no such item", and the page of a proxy as a successful put.
    DynamoDB's own checksum would show it, but the SDK checks it only if it may retry.
    """
    body = response_dict["body"] or b""
    if not is_whole(response_dict["headers"], len(body)):
        raise IncompleteReadError(actual_bytes=len(body), expected_bytes=-1)
    if response_dict["status_code"] < 300 and not _is_object(body):
        raise _UnclearAnswerError


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        return False


def _status_of(error: Exception) -> int:
    if not isinstance(error, ClientError):
        return 0
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
