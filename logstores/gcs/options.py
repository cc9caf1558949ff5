"""The options of GCSLogStore.

Own keys, `optimist.store.gcs.<option>`, with or without `spark.`: see `GCSOptions`. Where they say
nothing, the keys of Hadoop's connector are asked (`fs.gs.*`, `google.cloud.auth.*`, with or without
`spark.hadoop.`), then the environment variable `STORAGE_EMULATOR_HOST`, then Google's default
credentials (`GOOGLE_APPLICATION_CREDENTIALS`, gcloud, the machine's service account).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from optimist.core.errors import ConfigError
from optimist.core.options import STORE_PREFIX, parse_bool
from optimist.logstores.shared.hadoop_options import hadoop_options
from optimist.logstores.store_options import own_options

__all__ = ["AUTH_KINDS", "GCS_ENDPOINT", "GCSOptions"]

GCS_ENDPOINT = "https://storage.googleapis.com"
AUTH_KINDS = ("default", "service-account", "anonymous")

_PREFIX = f"{STORE_PREFIX}gcs."
_EMULATOR = "STORAGE_EMULATOR_HOST"
_AUTH_TYPES = {
    "APPLICATION_DEFAULT": "default",
    "COMPUTE_ENGINE": "default",
    "SERVICE_ACCOUNT_JSON_KEYFILE": "service-account",
    "UNAUTHENTICATED": "anonymous",
}


def _endpoint(text: str) -> str:
    url = text.rstrip("/") if "://" in text else f"http://{text}".rstrip("/")
    if not urlsplit(url).netloc:
        raise ValueError("must be a URL")
    return url


def _auth(text: str) -> str:
    if text not in AUTH_KINDS:
        raise ValueError(f"must be one of {', '.join(AUTH_KINDS)}")
    return text


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError("must be a number greater than zero")
    return value


def _tries(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("must be at least 1")
    return value


def _option(default: Any, parse: Callable[[str], Any] = str, *, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"parse": parse})


@dataclass(frozen=True, slots=True)
class GCSOptions:
    """What GCSLogStore goes by. Build it with `from_options`.

    Attributes:
        project: The project, where a request needs one.
        endpoint: Where the JSON API is, if not at Google's; probed before the first write.
        emulator_host: The same, without credentials.
        auth: Which credentials to use, one of `AUTH_KINDS`.
        key_file: The JSON key file of a service account.
        key_json: The contents of such a file.
        impersonate: A service account to act as.
        user_project: The project that pays for requests to buckets whose requester pays.
        connect_timeout_seconds: How long to wait for a connection.
        read_timeout_seconds: How long to wait for an answer.
        max_tries: How often a request is made when the store says that it is busy.
        allow_unsafe_writes: Write although a custom endpoint does not refuse to overwrite a commit;
            for tables that one writer writes. Every commit is logged.
        paying_buckets: The buckets that `user_project` pays for; empty means all.
    """

    project: str | None = _option(None)
    endpoint: str = _option(GCS_ENDPOINT, _endpoint)
    emulator_host: str | None = _option(None, _endpoint)
    auth: str | None = _option(None, _auth)
    key_file: str | None = _option(None)
    key_json: str | None = _option(None, secret=True)
    impersonate: str | None = _option(None)
    user_project: str | None = _option(None)
    connect_timeout_seconds: float = _option(10.0, _seconds)
    read_timeout_seconds: float = _option(60.0, _seconds)
    max_tries: int = _option(5, _tries)
    allow_unsafe_writes: bool = _option(False, parse_bool)
    paying_buckets: tuple[str, ...] = ()

    @classmethod
    def from_options(
        cls, options: Mapping[str, str], environment: Mapping[str, str] | None = None
    ) -> GCSOptions:
        """Parse the store's keys; all others are none of its business.

        Args:
            options: A plain mapping, for example the entries of a Spark conf.
            environment: Environment variables; the process's own if None.

        Raises:
            ConfigError: An own key is unknown or does not parse, keys contradict each other, or
                Hadoop's keys ask for credentials that do not exist here.
        """
        own = _parse_own(own_options(options, "gcs"))
        hadoop = _from_hadoop(hadoop_options(options, "fs.gs.", "google.cloud.auth."))
        if {"auth", "key_file", "key_json", "emulator_host"} & own.keys():
            for name in ("auth", "key_file"):
                hadoop.pop(name, None)
        given = {**hadoop, **own}
        given = {**_from_environment(given, environment), **given}
        if given.get("emulator_host") is not None:
            if "endpoint" in own:
                raise _contradiction("endpoint", "emulatorHost")
            given = {"auth": "anonymous", **given, "endpoint": given["emulator_host"]}
        if "key_file" in given and "key_json" in given:
            raise _contradiction("keyFile", "keyJson")
        return cls(**given)

    @property
    def is_custom(self) -> bool:
        """Whether the endpoint is somebody else's than Google's."""
        host = urlsplit(self.endpoint).hostname or ""
        return not (host == "googleapis.com" or host.endswith(".googleapis.com"))

    @property
    def auth_kind(self) -> str:
        """Which credentials to use, whether it was said or follows from what was given."""
        if self.auth is not None:
            return self.auth
        return "service-account" if self.key_file or self.key_json else "default"

    @property
    def timeout_s(self) -> tuple[float, float]:
        """Connecting and waiting for an answer, in seconds."""
        return self.connect_timeout_seconds, self.read_timeout_seconds

    def user_project_of(self, bucket: str) -> str | None:
        """Who pays for requests to a bucket, or None for its owner."""
        pays = not self.paying_buckets or bucket in self.paying_buckets
        return self.user_project if pays else None


def _parse_own(given: Mapping[str, str]) -> dict[str, Any]:
    known = {_spelling(each.name): each for each in fields(GCSOptions) if each.metadata}
    parsed: dict[str, Any] = {}
    for option, value in given.items():
        if option not in known:
            raise ConfigError(
                f"Unknown option {_PREFIX}{option}. Known: {', '.join(sorted(known))}.",
                kind="OPTIMIST_UNKNOWN_OPTION",
                key=f"{_PREFIX}{option}",
            )
        try:
            parsed[known[option].name] = known[option].metadata["parse"](value.strip())
        except ValueError as error:
            raise ConfigError(
                f"The value of {_PREFIX}{option} does not serve: {error}.",
                kind="OPTIMIST_INVALID_OPTION",
                key=f"{_PREFIX}{option}",
            ) from None
    return parsed


def _spelling(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


def _from_hadoop(keys: Mapping[str, str]) -> dict[str, Any]:
    def first(*names: str) -> str | None:
        values = (keys.get(name, "").strip() for name in names)
        return next((value for value in values if value), None)

    found: dict[str, Any] = {
        "project": first("fs.gs.project.id"),
        "auth": _hadoop_auth(keys),
        "key_file": first(
            "fs.gs.auth.service.account.json.keyfile",
            "google.cloud.auth.service.account.json.keyfile",
        ),
        "impersonate": first("fs.gs.auth.impersonation.service.account"),
    }
    root = first("fs.gs.storage.root.url")
    if root is not None:
        found["endpoint"] = _endpoint(root)
    mode = (first("fs.gs.requester.pays.mode") or "DISABLED").upper()
    if mode != "DISABLED":
        found["user_project"] = first("fs.gs.requester.pays.project.id")
    if mode == "CUSTOM":
        buckets = (first("fs.gs.requester.pays.buckets") or "").split(",")
        found["paying_buckets"] = tuple(each.strip() for each in buckets if each.strip())
    return {name: value for name, value in found.items() if value is not None}


def _hadoop_auth(keys: Mapping[str, str]) -> str | None:
    for name in ("fs.gs.auth.null.enable", "google.cloud.auth.null.enable"):
        if keys.get(name, "").strip().lower() == "true":
            return "anonymous"
    key = next((each for each in ("fs.gs.auth.type", "google.cloud.auth.type") if each in keys), "")
    if not key:
        return None
    kind = _AUTH_TYPES.get(keys[key].strip().upper())
    if kind is None:
        raise ConfigError(
            f"{key}={keys[key]} has no counterpart here. Those that have one: "
            f"{', '.join(_AUTH_TYPES)}. Or give credentials with {_PREFIX}*.",
            kind="OPTIMIST_UNSUPPORTED_OPTION",
            key=key,
            value=keys[key],
        )
    return kind


def _from_environment(
    given: Mapping[str, Any], environment: Mapping[str, str] | None
) -> dict[str, Any]:
    host = (os.environ if environment is None else environment).get(_EMULATOR, "")
    if not host or "endpoint" in given or "emulator_host" in given:
        return {}
    return {"emulator_host": _endpoint(host)}


def _contradiction(first: str, second: str) -> ConfigError:
    return ConfigError(
        f"{_PREFIX}{first} and {_PREFIX}{second} are both set, and only one can hold. Keep one.",
        kind="OPTIMIST_CONTRADICTING_OPTIONS",
        keys=(f"{_PREFIX}{first}", f"{_PREFIX}{second}"),
    )
