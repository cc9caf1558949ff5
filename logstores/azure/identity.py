"""Credentials for Azure storage, and their form for the SDK.

Keys, signatures and anonymous access need only azure-storage-blob. Tokens (service principals,
managed and workload identities, the default chain) come from the package azure-identity, which is
imported only when such credentials are used.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from azure.core.credentials import (
    AccessToken,
    AzureNamedKeyCredential,
    AzureSasCredential,
    TokenCredential,
)
from azure.core.exceptions import ClientAuthenticationError
from azure.core.pipeline.transport import RequestsTransport

from optimist.core.errors import ConfigError
from optimist.core.secrets import Secret, masked_repr, revealed
from optimist.logstores.shared.whole_answers import private_session

__all__ = ["AUTH_KINDS", "AzureCredential", "StorageTokens", "sdk_credential"]

AUTH_KINDS = (
    "key",
    "sas",
    "service-principal",
    "managed-identity",
    "workload-identity",
    "default",
    "anonymous",
)

_SCOPE = "https://storage.azure.com/.default"
_NEEDED = {
    "key": ("account_key",),
    "sas": ("sas",),
    "service-principal": ("tenant_id", "client_id", "client_secret"),
}


@dataclass(frozen=True, slots=True)
class AzureCredential:
    """Credentials of one kind."""

    kind: str
    account: str
    account_key: Secret[str] | None = None
    sas: Secret[str] | None = None
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: Secret[str] | None = None
    authority: str | None = None
    token_file: str | None = None

    __repr__ = masked_repr

    def ensure_complete(self, *, source: str) -> AzureCredential:
        """Return these credentials, if they are complete.

        Args:
            source: Their source, for the message.

        Raises:
            ConfigError: A part is missing.
        """
        missing = [name for name in _NEEDED.get(self.kind, ()) if not getattr(self, name)]
        if missing:
            raise ConfigError(
                f"The credentials of kind {self.kind} for account {self.account} ({source}) lack "
                f"{', '.join(missing)}. Set what is missing, or choose another kind.",
                kind="OPTIMIST_NO_CREDENTIALS",
                account=self.account,
                missing=tuple(missing),
            )
        return self


def sdk_credential(
    credential: AzureCredential,
) -> AzureNamedKeyCredential | AzureSasCredential | TokenCredential | None:
    """Return the credential for the SDK's clients, or None for anonymous access.

    Raises:
        ConfigError: azure-identity is needed and not installed.
    """
    if credential.kind == "key":
        return AzureNamedKeyCredential(credential.account, revealed(credential.account_key) or "")
    if credential.kind == "sas":
        return AzureSasCredential((revealed(credential.sas) or "").lstrip("?"))
    if credential.kind == "anonymous":
        return None
    return StorageTokens(_make_token_credential(credential))


class StorageTokens:
    """A source of tokens for Azure's storage, and for nothing else.

    A service may answer with a challenge that names a tenant and a resource. The SDK would then
    fetch a token for these and send it there. So an endpoint could choose which of our tokens it
    gets, such as one for the management of the whole account.

    Args:
        credential: Gives the tokens, for its own tenant.
    """

    def __init__(self, credential: TokenCredential) -> None:
        self.credential = credential

    def get_token(
        self,
        *scopes: str,
        claims: str | None = None,
        tenant_id: str | None = None,
        **more: Any,
    ) -> AccessToken:
        """See `TokenCredential.get_token`.

        A tenant that the service names is ignored.

        Raises:
            ClientAuthenticationError: The scope is not the storage's.
        """
        del tenant_id
        if scopes != (_SCOPE,):
            raise ClientAuthenticationError(
                "The endpoint asks for a token of another service than Azure's storage; it was not "
                "given."
            )
        given = more if claims is None else {**more, "claims": claims}
        return self.credential.get_token(*scopes, **given)


def _make_token_credential(credential: AzureCredential) -> TokenCredential:
    identity = _import_identity(credential)
    # Its own session would send the password in ~/.netrc for the login host.
    sending = {"transport": RequestsTransport(session=private_session())}
    authority = {**sending, **({"authority": credential.authority} if credential.authority else {})}
    client = {"client_id": credential.client_id} if credential.client_id else {}
    found: TokenCredential
    if credential.kind == "service-principal":
        found = identity.ClientSecretCredential(
            tenant_id=credential.tenant_id,
            client_id=credential.client_id,
            client_secret=revealed(credential.client_secret),
            **authority,
        )
    elif credential.kind == "managed-identity":
        found = identity.ManagedIdentityCredential(**client, **sending)
    elif credential.kind == "workload-identity":
        tenant = {"tenant_id": credential.tenant_id} if credential.tenant_id else {}
        file = {"token_file_path": credential.token_file} if credential.token_file else {}
        found = identity.WorkloadIdentityCredential(**client, **tenant, **file, **authority)
    else:
        found = identity.DefaultAzureCredential(**authority)
    return found


def _import_identity(credential: AzureCredential) -> Any:
    try:
        return importlib.import_module("azure.identity")
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"Credentials of kind {credential.kind} for account {credential.account} need the "
            "package azure-identity: pip install 'azure-identity>=1.16'.",
            kind="OPTIMIST_MISSING_PACKAGE",
            package="azure-identity",
        ) from error
