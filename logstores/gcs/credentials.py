"""Google's credentials, chosen by the options."""

from __future__ import annotations

import json
from typing import Any

import google.auth
from google.auth import impersonated_credentials
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError
from google.auth.transport.requests import Request
from google.oauth2 import service_account
from google.oauth2.credentials import Credentials

from optimist.core.errors import ConfigError
from optimist.logstores.gcs.errors import no_login
from optimist.logstores.gcs.options import GCSOptions
from optimist.logstores.shared.whole_answers import private_session

__all__ = ["gcs_credentials"]

_SCOPES = ("https://www.googleapis.com/auth/devstorage.read_write",)
_OWN = "optimist.store.gcs"


def gcs_credentials(options: GCSOptions) -> Any:
    """Return the SDK's credentials.

    Raises:
        ConfigError: They are missing, or the key file can't be used; its contents are not quoted.
        StorageError: The machine's metadata server did not answer.
    """
    if options.auth_kind == "anonymous":
        return AnonymousCredentials()  # type: ignore[no-untyped-call]
    found = _find_credentials(options)
    if options.impersonate is None:
        return found
    return impersonated_credentials.Credentials(  # type: ignore[no-untyped-call]
        source_credentials=found,
        target_principal=options.impersonate,
        target_scopes=list(_SCOPES),
    )


def _find_credentials(options: GCSOptions) -> Any:
    if options.auth_kind == "service-account":
        return _service_account_credentials(options)
    if options.auth_kind == "access-token":
        return _access_token_credentials(options)
    return _default_credentials()


def _access_token_credentials(options: GCSOptions) -> Any:
    if options.access_token is None:
        raise ConfigError(
            f"An access token was asked for, but there is none. Set {_OWN}.accessToken.",
            kind="OPTIMIST_NO_CREDENTIALS",
        )
    return Credentials(token=options.access_token.reveal())  # type: ignore[no-untyped-call]


def _service_account_credentials(options: GCSOptions) -> Any:
    build = service_account.Credentials
    try:
        if options.key_json is not None:
            return build.from_service_account_info(  # type: ignore[no-untyped-call]
                json.loads(options.key_json.reveal()), scopes=_SCOPES
            )
        if options.key_file is not None:
            return build.from_service_account_file(  # type: ignore[no-untyped-call]
                options.key_file, scopes=_SCOPES
            )
    except OSError as error:
        # The path is not shown: a user may have put the key itself instead of its file's name.
        raise _unusable_key(f"the file that {_OWN}.keyFile names", error) from None
    except (ValueError, GoogleAuthError) as error:
        raise _unusable_key(options.key_file or f"{_OWN}.keyJson", error) from None
    raise ConfigError(
        f"A service account was asked for, but there is no key for it. Set {_OWN}.keyFile or "
        "fs.gs.auth.service.account.json.keyfile.",
        kind="OPTIMIST_NO_CREDENTIALS",
    )


def _unusable_key(source: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"The service account key of Google Cloud Storage can't be used: {source} "
        f"({type(error).__name__}). It must be the JSON key of a service account.",
        kind="OPTIMIST_NO_CREDENTIALS",
        source=source,
    )


def _default_credentials() -> Any:
    try:
        # With its own session, it would send a password of ~/.netrc to the metadata server.
        request = Request(private_session())
        return google.auth.default(scopes=_SCOPES, request=request)[0]
    except DefaultCredentialsError:
        raise ConfigError(
            "There are no credentials for Google Cloud Storage; nothing was read or written. Run "
            "gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS, "
            f"{_OWN}.keyFile or fs.gs.auth.service.account.json.keyfile; {_OWN}.auth=anonymous "
            "reads what is public.",
            kind="OPTIMIST_NO_CREDENTIALS",
        ) from None
    except GoogleAuthError as error:
        raise no_login(error) from None
