"""The options of GCSLogStore.

Our own keys are `optimist.store.gcs.<option>`, with or without `spark.`: see `GCSOptions`. If they
give no value, the keys of Hadoop's connector apply (`fs.gs.*`, `google.cloud.auth.*`, with or
without `spark.hadoop.`), then the environment variable `STORAGE_EMULATOR_HOST`, then Google's
default credentials (`GOOGLE_APPLICATION_CREDENTIALS`, gcloud, the machine's service account).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from optimist.core.errors import ConfigError
from optimist.core.options.engine import STORE_PREFIX
from optimist.core.options.fields import (
    contradicting_options,
    key_of_field,
    option,
    parse_foreign_options,
)
from optimist.core.options.values import (
    one_of,
    parse_option,
    parse_url,
)
from optimist.core.secrets import Options, Secret, masked_repr
from optimist.logstores.shared.hadoop_options import hadoop_options
from optimist.logstores.shared.service_options import ServiceOptions

__all__ = ["AUTH_KINDS", "GCS_ENDPOINT", "GCSOptions"]

GCS_ENDPOINT = "https://storage.googleapis.com"
AUTH_KINDS = ("default", "service-account", "access-token", "anonymous")

_PREFIX = f"{STORE_PREFIX}gcs."
_EMULATOR = "STORAGE_EMULATOR_HOST"
_CREDENTIALS = ("key_file", "key_json", "access_token", "impersonate")
_PAYER = "fs.gs.requester.pays.project.id"
_AUTH_TYPES = {
    "APPLICATION_DEFAULT": "default",
    "COMPUTE_ENGINE": "default",
    "SERVICE_ACCOUNT_JSON_KEYFILE": "service-account",
    "UNAUTHENTICATED": "anonymous",
}


def _parse_endpoint(text: str) -> str:
    return parse_url(text if "://" in text else f"https://{text}")


def _parse_emulator(text: str) -> str:
    return parse_url(text if "://" in text else f"http://{text}")


@dataclass(frozen=True, slots=True)
class GCSOptions(ServiceOptions):
    """The options of GCSLogStore, parsed by `from_options`.

    Attributes:
        project: The project, if a request needs one.
        endpoint: The URL of the JSON API, if it is not Google's; it is probed before the first
            write.
        emulator_host: The URL of an emulator, which gets no credentials.
        auth: The credentials to use, one of `AUTH_KINDS`.
        key_file: The JSON key file of a service account.
        key_json: The contents of such a file.
        access_token: An access token, which is used until it expires and is not renewed.
        impersonate: A service account to act as.
        user_project: The project that pays for requests to requester-pays buckets.
        paying_buckets: The buckets that `user_project` pays for; empty means all.
    """

    prefix: ClassVar[str] = _PREFIX

    project: str | None = option(None, foreign=("fs.gs.project.id",))
    endpoint: str = option(GCS_ENDPOINT, _parse_endpoint, foreign=("fs.gs.storage.root.url",))
    emulator_host: str | None = option(None, _parse_emulator)
    auth: str | None = option(None, one_of(*AUTH_KINDS))
    key_file: str | None = option(
        None,
        foreign=(
            "fs.gs.auth.service.account.json.keyfile",
            "google.cloud.auth.service.account.json.keyfile",
        ),
    )
    key_json: Secret[str] | None = option(None, Secret)
    access_token: Secret[str] | None = option(None, Secret)
    impersonate: str | None = option(None, foreign=("fs.gs.auth.impersonation.service.account",))
    user_project: str | None = option(None)
    paying_buckets: tuple[str, ...] = ()

    __repr__ = masked_repr

    @classmethod
    def _completed(
        cls, own: dict[str, Any], options: Mapping[str, str], environment: Mapping[str, str]
    ) -> GCSOptions:
        hadoop = _from_hadoop(hadoop_options(options, "fs.gs.", "google.cloud.auth."))
        if {"auth", "key_file", "key_json", "access_token", "emulator_host"} & own.keys():
            for name in ("auth", "key_file"):
                hadoop.pop(name, None)
        given = {**hadoop, **own}
        given = {**_from_environment(given, environment), **given}
        if given.get("emulator_host") is not None:
            if "endpoint" in own:
                raise _contradicting_names("endpoint", "emulator_host")
            # All credentials are for Google, and requests to an emulator are not encrypted.
            given = {
                **{name: value for name, value in given.items() if name not in _CREDENTIALS},
                "auth": "anonymous",
                "endpoint": given["emulator_host"],
            }
        _refuse_two(given, "key_file", "key_json", "access_token")
        return cls(**given)

    @property
    def is_custom(self) -> bool:
        """True if the endpoint is not Google's."""
        host = urlsplit(self.endpoint).hostname or ""
        return not (host == "googleapis.com" or host.endswith(".googleapis.com"))

    @property
    def auth_kind(self) -> str:
        """The credentials to use, as set by `auth` or derived from the other options."""
        if self.auth is not None:
            return self.auth
        if self.access_token is not None:
            return "access-token"
        return "service-account" if self.key_file or self.key_json else "default"

    @property
    def timeout_s(self) -> tuple[float, float]:
        """The time-outs for connecting and for an answer, in seconds."""
        return self.connect_timeout_s, self.read_timeout_s

    def user_project_of(self, bucket: str) -> str | None:
        """Return the project that pays for requests to a bucket, or None if its owner pays."""
        pays = not self.paying_buckets or bucket in self.paying_buckets
        return self.user_project if pays else None


def _from_hadoop(given: Mapping[str, str]) -> dict[str, Any]:
    keys = Options({key: given[key] for key in given if given[key].strip()})
    found = parse_foreign_options(GCSOptions, keys)
    kind = _auth_from_hadoop(keys)
    if kind is not None:
        found["auth"] = kind
    mode = keys.get("fs.gs.requester.pays.mode", "DISABLED").strip().upper()
    if mode != "DISABLED" and _PAYER in keys:
        found["user_project"] = keys[_PAYER].strip()
    if mode == "CUSTOM":
        buckets = keys.get("fs.gs.requester.pays.buckets", "").split(",")
        found["paying_buckets"] = tuple(each.strip() for each in buckets if each.strip())
    return found


def _auth_from_hadoop(keys: Mapping[str, str]) -> str | None:
    for name in ("fs.gs.auth.null.enable", "google.cloud.auth.null.enable"):
        if keys.get(name, "").strip().lower() == "true":
            return "anonymous"
    key = next((each for each in ("fs.gs.auth.type", "google.cloud.auth.type") if each in keys), "")
    if not key:
        return None
    kind = _AUTH_TYPES.get(keys[key].strip().upper())
    if kind is None:
        raise ConfigError(
            f"The value of {key} is not supported. Supported are: "
            f"{', '.join(_AUTH_TYPES)}. Or set credentials with {_PREFIX}*.",
            kind="OPTIMIST_UNSUPPORTED_OPTION",
            key=key,
        )
    return kind


def _from_environment(given: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    host = environment.get(_EMULATOR, "")
    if not host or "endpoint" in given or "emulator_host" in given:
        return {}
    return {"emulator_host": parse_option(Options({_EMULATOR: host}), _EMULATOR, _parse_emulator)}


def _refuse_two(given: Mapping[str, Any], *names: str) -> None:
    found = [name for name in names if name in given]
    if len(found) > 1:
        raise _contradicting_names(*found[:2])


def _contradicting_names(*names: str) -> ConfigError:
    first, second = (_PREFIX + key_of_field(name) for name in names)
    return contradicting_options(first, second, "only one of them can be used")
