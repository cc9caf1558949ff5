"""Which credentials of clouds this machine has: their kind and their place, not their value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

__all__ = ["found_credentials"]

_VARIABLES = (
    ("S3", "access key", ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")),
    ("S3", "named profile", ("AWS_PROFILE",)),
    ("S3", "web identity", ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN")),
    ("S3", "container's role", ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",)),
    ("S3", "container's role", ("AWS_CONTAINER_CREDENTIALS_FULL_URI",)),
    ("Azure", "connection string", ("AZURE_STORAGE_CONNECTION_STRING",)),
    ("Azure", "account key", ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY")),
    ("Azure", "SAS token", ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_SAS_TOKEN")),
    ("Azure", "application", ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")),
    ("Azure", "workload identity", ("AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE")),
    ("Google Cloud Storage", "file of a key", ("GOOGLE_APPLICATION_CREDENTIALS",)),
)
_FILES = (
    ("S3", "profiles", "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
    ("S3", "profiles", "AWS_CONFIG_FILE", ".aws/config"),
    ("Azure", "az login", "AZURE_CONFIG_DIR", ".azure"),
    (
        "Google Cloud Storage",
        "gcloud auth application-default login",
        "",
        ".config/gcloud/application_default_credentials.json",
    ),
)
_OPTIONS = (
    ("S3", "fs.s3a."),
    ("Azure", "fs.azure."),
    ("Google Cloud Storage", "fs.gs."),
    ("Google Cloud Storage", "google.cloud."),
)
_NAMES_OF_SECRETS = ("key", "secret", "token", "password", "credential", "keyfile", "sas")
_COLUMNS = pa.schema([("service", pa.string()), ("kind", pa.string()), ("source", pa.string())])


def found_credentials(
    options: Mapping[str, str], environment: Mapping[str, str], home: Path
) -> pa.Table:
    """Return a row for each kind of credentials: `service`, `kind` and `source`.

    Args:
        options: The options of a table. Only their keys are looked at.
        environment: The environment variables.
        home: The user's home directory.
    """
    rows = [*_of_options(options), *_of_environment(environment), *_of_files(environment, home)]
    return pa.Table.from_pylist(rows, schema=_COLUMNS)


def _of_options(options: Mapping[str, str]) -> Iterator[dict[str, str]]:
    for key in sorted(options):
        plain = key.removeprefix("spark.").removeprefix("hadoop.")
        names = plain.lower().replace("-", ".").replace("_", ".").split(".")
        for service, prefix in _OPTIONS:
            if plain.startswith(prefix) and any(name in _NAMES_OF_SECRETS for name in names):
                yield {"service": service, "kind": "option", "source": f"the option {key}"}


def _of_environment(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    for service, kind, names in _VARIABLES:
        if all(environment.get(name) for name in names):
            source = f"the environment: {', '.join(names)}"
            yield {"service": service, "kind": kind, "source": source}


def _of_files(environment: Mapping[str, str], home: Path) -> Iterator[dict[str, str]]:
    for service, kind, variable, usual in _FILES:
        path = Path(environment.get(variable) or home / usual)
        if path.exists():
            yield {"service": service, "kind": kind, "source": str(path)}
