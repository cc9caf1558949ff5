"""The options of DynamoDB: Delta's keys (spec 4.3) and our own, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from optimist.core.errors import ConfigError
from optimist.locks.lock_options import OwnOptions, invalid_option

__all__ = ["DELTA_PREFIX", "DynamoDBOptions"]

DELTA_PREFIX = "io.delta.storage.S3DynamoDBLogStore."
"""Before Delta's keys; before it in turn may stand `spark.`, `spark.hadoop.` or `hadoop.`."""

_DEFAULT_CHAINS = frozenset(
    {
        "com.amazonaws.auth.DefaultAWSCredentialsProviderChain",
        "com.amazonaws.auth.EnvironmentVariableCredentialsProvider",
        "com.amazonaws.auth.InstanceProfileCredentialsProvider",
        "com.amazonaws.auth.WebIdentityTokenCredentialsProvider",
        "com.amazonaws.auth.profile.ProfileCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.InstanceProfileCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider",
    }
)
"""Java providers whose sources boto3's own chain looks through."""


@dataclass(frozen=True, slots=True)
class DynamoDBOptions:
    """Where the tables are and how to reach them.

    Attributes:
        table_name: The arbiter's table (`ddb.tableName`).
        region: Its region (`ddb.region`).
        read_capacity: Read units of a table that we make (`provisionedThroughput.rcu`).
        write_capacity: Write units of a table that we make (`provisionedThroughput.wcu`).
        ttl_s: Seconds from completing an entry to its `expireTime` (`ddb.ttl`).
        lease_table: The table of the leases (`optimist.store.dynamodb.leaseTable`).
        endpoint: Another server than AWS's (`optimist.store.dynamodb.endpoint`).
        creates_tables: Whether a missing table is made (`...createTables`).
        max_clock_skew_s: How far the clocks of two lease holders may be apart
            (`...maxClockSkewSeconds`).
        profile: A profile of the AWS config files (`...profile`).
        access_key_id: With the two below, credentials given in the conf; without, the SDK's chain.
        secret_access_key: Never shown.
        session_token: Never shown.
    """

    table_name: str = "delta_log"
    region: str = "us-east-1"
    read_capacity: int = 5
    write_capacity: int = 5
    ttl_s: int = 86_400
    lease_table: str = "optimist_leases"
    endpoint: str | None = None
    creates_tables: bool = True
    max_clock_skew_s: float = 10.0
    profile: str | None = None
    access_key_id: str | None = field(default=None, repr=False)
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> DynamoDBOptions:
        """Parse Delta's keys and those under `optimist.store.dynamodb.`.

        Raises:
            ConfigError: A value does not parse, two spellings of a key differ, a key of ours is
                unknown, or the credentials provider has no counterpart here.
        """
        own = OwnOptions(options, "dynamodb")
        given = _delta_options(options)
        _ensure_known_provider(given.get("credentials.provider"))
        default = cls()  # a slotted class has no class attributes to read defaults from
        parsed = cls(
            table_name=given.get("ddb.tableName", default.table_name),
            region=given.get("ddb.region", default.region),
            read_capacity=_whole(given, "provisionedThroughput.rcu", default.read_capacity, 1),
            write_capacity=_whole(given, "provisionedThroughput.wcu", default.write_capacity, 1),
            ttl_s=_whole(given, "ddb.ttl", default.ttl_s, 0),
            lease_table=own.text("leaseTable") or default.lease_table,
            endpoint=own.text("endpoint"),
            creates_tables=own.flag("createTables", default.creates_tables),
            max_clock_skew_s=own.seconds("maxClockSkewSeconds", default.max_clock_skew_s),
            profile=own.text("profile"),
            access_key_id=own.text("accessKeyId"),
            secret_access_key=own.text("secretAccessKey"),
            session_token=own.text("sessionToken"),
        )
        own.ensure_all_taken()
        _ensure_whole_credentials(parsed)
        return parsed


def _delta_options(options: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, tuple[str, str]] = {}
    for key, value in options.items():
        bare = key.removeprefix("spark.").removeprefix("hadoop.").removeprefix("spark.")
        if not bare.startswith(DELTA_PREFIX):
            continue
        name = bare.removeprefix(DELTA_PREFIX)
        first, known = found.setdefault(name, (key, value.strip()))
        if known != value.strip():
            raise ConfigError(
                f"{first} and {key} are two spellings of one option and differ. Keep one.",
                kind="OPTIMIST_CONTRADICTING_OPTIONS",
                keys=(first, key),
            )
    return {name: value for name, (_, value) in found.items()}


def _whole(given: Mapping[str, str], name: str, default: int, at_least: int) -> int:
    text = given.get(name)
    if text is None:
        return default
    value = int(text) if text.removeprefix("-").isdecimal() else None
    if value is None or value < at_least:
        reason = f"must be a whole number, at least {at_least}"
        raise invalid_option(f"spark.{DELTA_PREFIX}{name}", text, reason)
    return value


def _ensure_known_provider(provider: str | None) -> None:
    if provider is None or provider in _DEFAULT_CHAINS:
        return
    raise ConfigError(
        f"spark.{DELTA_PREFIX}credentials.provider={provider} is a Java class that has no "
        "counterpart here. Remove the key, and credentials are looked for as every AWS tool does; "
        "or give optimist.store.dynamodb.profile, or accessKeyId and secretAccessKey beside it.",
        kind="OPTIMIST_INVALID_OPTION",
        key=f"spark.{DELTA_PREFIX}credentials.provider",
    )


def _ensure_whole_credentials(options: DynamoDBOptions) -> None:
    if (options.access_key_id is None) != (options.secret_access_key is None):
        raise ConfigError(
            "optimist.store.dynamodb.accessKeyId and optimist.store.dynamodb.secretAccessKey go "
            "together; one of them is missing.",
            kind="OPTIMIST_INVALID_OPTION",
            key="optimist.store.dynamodb.accessKeyId",
        )
