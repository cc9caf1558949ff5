"""The options of DynamoDB: Delta's keys (spec 4.3) and our own, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optimist.core.errors import ConfigError
from optimist.core.options.engine import STORE_PREFIX
from optimist.core.options.fields import (
    foreign_option,
    keys_by_name,
    option,
    parse_foreign_options,
    parse_options,
)
from optimist.core.options.values import at_least, blank_as, parse_bool, parse_seconds, parse_url
from optimist.core.secrets import Options, Secret, masked_repr

__all__ = ["DELTA_PREFIX", "DynamoDBOptions"]

DELTA_PREFIX = "io.delta.storage.S3DynamoDBLogStore."
"""The prefix of Delta's keys, which may follow `spark.`, `spark.hadoop.` or `hadoop.`."""

_LEASE_TABLE = "optimist_leases"
_PROVIDER = "credentials.provider"
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
"""Java providers whose sources boto3's own chain also searches."""


@dataclass(frozen=True, slots=True)
class DynamoDBOptions:
    """The options to reach the tables.

    Attributes:
        table_name: The arbiter's table (`ddb.tableName`).
        region: Its region (`ddb.region`).
        read_capacity: Read units of a table that we create (`provisionedThroughput.rcu`).
        write_capacity: Write units of a table that we create (`provisionedThroughput.wcu`).
        ttl_s: Seconds from completing an entry to its `expireTime` (`ddb.ttl`).
        lease_table: The table of the leases (`optimist.store.dynamodb.leaseTable`).
        endpoint: A server other than AWS's (`optimist.store.dynamodb.endpoint`).
        creates_tables: True if a missing table is created (`...createTables`).
        max_clock_skew_s: How much the clocks of two lease holders may differ
            (`...maxClockSkewSeconds`).
        profile: A profile of the AWS config files (`...profile`).
        access_key_id: The access key in the conf, with the next two; without them, the SDK's chain
            is used.
        secret_access_key: See `access_key_id`.
        session_token: See `access_key_id`.
    """

    table_name: str = foreign_option("delta_log", str, "ddb.tableName")
    region: str = foreign_option("us-east-1", str, "ddb.region")
    read_capacity: int = foreign_option(5, at_least(1), "provisionedThroughput.rcu")
    write_capacity: int = foreign_option(5, at_least(1), "provisionedThroughput.wcu")
    ttl_s: int = foreign_option(86_400, at_least(0), "ddb.ttl")
    lease_table: str = option(_LEASE_TABLE, blank_as(_LEASE_TABLE, str))
    endpoint: str | None = option(None, parse_url)
    creates_tables: bool = option(True, parse_bool, "createTables")
    max_clock_skew_s: float = option(10.0, parse_seconds)
    profile: str | None = option(None)
    access_key_id: Secret[str] | None = option(None, Secret)
    secret_access_key: Secret[str] | None = option(None, Secret)
    session_token: Secret[str] | None = option(None, Secret)

    __repr__ = masked_repr

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> DynamoDBOptions:
        """Parse Delta's keys and the keys under `optimist.store.dynamodb.`.

        Raises:
            ConfigError: A value does not parse, two spellings of a key differ, a key of ours is
                unknown, or the credentials provider has no counterpart here.
        """
        own = parse_options(cls, options, f"{STORE_PREFIX}dynamodb.")
        given = _delta_options(options)
        _ensure_known_provider(given)
        parsed = cls(**parse_foreign_options(cls, given, f"spark.{DELTA_PREFIX}"), **own)
        _ensure_whole_credentials(parsed)
        return parsed


def _delta_options(options: Mapping[str, str]) -> Options:
    def name_of(key: str) -> str | None:
        bare = key.removeprefix("spark.").removeprefix("hadoop.").removeprefix("spark.")
        return bare.removeprefix(DELTA_PREFIX) if bare.startswith(DELTA_PREFIX) else None

    keys = keys_by_name(options, name_of)
    return Options({name: options[key] for name, key in keys.items()})


def _ensure_known_provider(given: Mapping[str, str]) -> None:
    if _PROVIDER not in given or given[_PROVIDER].strip() in _DEFAULT_CHAINS:
        return
    raise ConfigError(
        f"The value of spark.{DELTA_PREFIX}{_PROVIDER} is a Java class that Optimist has no "
        "counterpart for. Remove the key to use the default credentials of AWS, or set "
        "optimist.store.dynamodb.profile, or optimist.store.dynamodb.accessKeyId and "
        ".secretAccessKey.",
        kind="OPTIMIST_INVALID_OPTION",
        key=f"spark.{DELTA_PREFIX}{_PROVIDER}",
    )


def _ensure_whole_credentials(options: DynamoDBOptions) -> None:
    if (options.access_key_id is None) != (options.secret_access_key is None):
        raise ConfigError(
            "Only one of optimist.store.dynamodb.accessKeyId and "
            "optimist.store.dynamodb.secretAccessKey is set. Set both, or neither.",
            kind="OPTIMIST_INVALID_OPTION",
            key="optimist.store.dynamodb.accessKeyId",
        )
