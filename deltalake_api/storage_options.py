"""The keys of deltalake's `storage_options`, as options of our stores.

Case does not matter, and `aws_`, `azure_` and `google_` may be missing where deltalake allows it.
Keys of our own families (`optimist.`, `spark.`, `fs.`) pass as they are. A key that has no meaning
here is refused by its name, since a store that ignores it could write to the wrong place.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from optimist.core.errors import ConfigError
from optimist.core.errors.foreign_text import quoted
from optimist.core.options.fields import keys_by_name
from optimist.core.options.handles import options_given
from optimist.core.options.values import parse_bool, parse_option
from optimist.core.secrets import Options

__all__ = ["engine_options"]

_S3, _AZURE, _GCS = "optimist.store.s3.", "optimist.store.azure.", "optimist.store.gcs."
_DYNAMODB = "io.delta.storage.S3DynamoDBLogStore.ddb."
_STORE_OF_S3 = "spark.delta.logStore.s3.impl"
_OURS = ("optimist.", "spark.", "fs.", "delta.", "io.delta.")

_KEYS: Mapping[str, tuple[str, ...]] = {
    _S3 + "accessKey": ("aws_access_key_id", "access_key_id"),
    _S3 + "secretKey": ("aws_secret_access_key", "secret_access_key"),
    _S3 + "sessionToken": ("aws_session_token", "aws_token", "session_token", "token"),
    _S3 + "region": ("aws_region", "aws_default_region", "region", "default_region"),
    _S3 + "endpoint": ("aws_endpoint_url", "aws_endpoint", "endpoint_url"),
    _S3 + "anonymous": ("aws_skip_signature", "skip_signature"),
    _S3 + "profile": ("aws_profile",),
    _S3 + "encryption": ("aws_server_side_encryption",),
    _S3 + "encryptionKey": ("aws_sse_kms_key_id",),
    _S3 + "requesterPays": ("aws_request_payer", "request_payer"),
    _DYNAMODB + "tableName": ("delta_dynamo_table_name",),
    _DYNAMODB + "region": ("aws_region_dynamodb",),
    _AZURE + "account": ("azure_storage_account_name", "account_name"),
    _AZURE + "accountKey": (
        "azure_storage_account_key",
        "azure_storage_access_key",
        "azure_storage_master_key",
        "account_key",
        "access_key",
        "master_key",
    ),
    _AZURE + "sas": ("azure_storage_sas_token", "azure_storage_sas_key", "sas_token", "sas_key"),
    _AZURE + "clientId": ("azure_storage_client_id", "azure_client_id", "client_id"),
    _AZURE + "clientSecret": (
        "azure_storage_client_secret",
        "azure_client_secret",
        "client_secret",
    ),
    _AZURE + "tenantId": (
        "azure_storage_tenant_id",
        "azure_storage_authority_id",
        "azure_tenant_id",
        "azure_authority_id",
        "tenant_id",
        "authority_id",
    ),
    _AZURE + "endpoint": ("azure_storage_endpoint", "azure_endpoint"),
    _GCS + "keyFile": (
        "google_service_account",
        "google_service_account_path",
        "google_application_credentials",
        "service_account",
        "service_account_path",
        "application_credentials",
    ),
    _GCS + "keyJson": ("google_service_account_key", "service_account_key"),
}
_BY_NAME = {name: key for key, names in _KEYS.items() for name in names}
_NOTHING_TO_DO = {
    "aws_s3_allow_unsafe_rename": None,
    "allow_unsafe_rename": None,
    "aws_allow_http": None,
    "azure_allow_http": None,
    "allow_http": None,
    "aws_conditional_put": "etag",
    "conditional_put": "etag",
}
"""Keys that ask for nothing more than what is done anyway, each with the one value it may have."""
_VIRTUAL_HOST = ("aws_virtual_hosted_style_request", "virtual_hosted_style_request")
_LOCKS = ("aws_s3_locking_provider", "locking_provider")


def engine_options(given: Mapping[str, str] | None) -> Options:
    """Return our options for deltalake's `storage_options`.

    Values are never local variables here, since crash reports show those.

    Raises:
        ArgumentTypeError: They are no mapping (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
        ConfigError: A key has no meaning here (kind `OPTIMIST_UNKNOWN_OPTION`), or two keys of one
            option differ (kind `OPTIMIST_CONTRADICTING_OPTIONS`).
    """
    given = options_given(given)
    keys = keys_by_name(given, partial(_name_of, given=given))
    return Options({name: _value_of(key, given) for name, key in keys.items()})


def _name_of(key: str, given: Options) -> str | None:
    """Return our key for one of deltalake, or None if there is nothing to do for it."""
    if key.startswith(_OURS):
        return key
    name = key.lower()
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name in _NOTHING_TO_DO and _NOTHING_TO_DO[name] in (None, str(given[key]).lower()):
        return None
    if name in _VIRTUAL_HOST:
        return _S3 + "pathStyle"
    if name in _LOCKS and str(given[key]).lower() == "dynamodb":
        return _STORE_OF_S3
    raise ConfigError(
        f"The storage option {quoted(key)} has no meaning here, or not with its value. Nothing was "
        "done. Leave it out, or give an option of ours (docs/options.md).",
        kind="OPTIMIST_UNKNOWN_OPTION",
        key=key,
    )


def _value_of(key: str, given: Options) -> str:
    name = key.lower()
    if name in _VIRTUAL_HOST:
        return str(not parse_option(given, key, parse_bool)).lower()
    return "s3-dynamodb" if name in _LOCKS else given[key]
