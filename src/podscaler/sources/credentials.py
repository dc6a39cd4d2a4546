"""Reads the credentials of sources from Secrets, and removes their values from texts.

`podscaler.sources.open_sources` reads them before each read of a source, so that a changed Secret takes effect with the
next read. Rules:

1. Only a Secret of the MetricSource's namespace with the label `podscaler.dev/metric-source: "true"` is used: who may
   create MetricSources does not thereby read every Secret of the namespace.
2. No text that leaves the package has the value of a credential, in any form in which a URL or a header carries it.

Source: the API of Secrets (core/v1); RFC 3986 3.2.1 (User Information), RFC 7617 (The 'Basic' HTTP Authentication
Scheme).
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote, quote_plus

import msgspec

from podscaler.api.kinds.autoscaling.metric_source import SECRET_LABEL
from podscaler.api.machinery.meta import ObjectMeta, Wire
from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client
from podscaler.sources.metric_source import CredentialReference
from podscaler.sources.protocol import CredentialsUnavailable

HIDDEN = "***"
SHOWN_CHARACTERS = 300
"""The length to which `redacted` shortens a text."""
_USER_INFO = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*://)[^/@\s]*@")


class _Secret(Wire, frozen=True):
    """A Secret; `data` is base64 text by key."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    data: dict[str, str] | None = None


_SECRET_DECODER = msgspec.json.Decoder(_Secret)


async def read(client: Client, namespace: str, references: Sequence[CredentialReference]) -> dict[str, str]:
    """The values of credentials by their names; each Secret is requested once. Raises CredentialsUnavailable."""
    secrets: dict[str, Mapping[str, str]] = {}
    values: dict[str, str] = {}
    for reference in references:
        name, key = reference.secret_key_ref.name, reference.secret_key_ref.key
        if name not in secrets:
            secrets[name] = await _read_secret(client, namespace, name)
        if key not in secrets[name]:
            raise CredentialsUnavailable(f"the Secret {name} has no key {key}")
        values[reference.name] = _decode_entry(secrets[name][key], f"the key {key} of the Secret {name}")
    return values


async def _read_secret(client: Client, namespace: str, name: str) -> Mapping[str, str]:
    """The data of a Secret that may be used. Raises CredentialsUnavailable."""
    try:
        path = "/api/v1" + urls.path("namespaces", urls.object_name(namespace), "secrets", urls.object_name(name))
        secret = _SECRET_DECODER.decode(await client.get(path, subject=f"secrets {name}"))
    except StatusError as error:
        raise CredentialsUnavailable(f"the Secret {name} cannot be read: {error.message}") from None
    except JSON_DECODE_ERRORS:
        raise CredentialsUnavailable(f"the Secret {name} cannot be decoded") from None
    if (secret.metadata.labels or {}).get(SECRET_LABEL) != "true":
        raise CredentialsUnavailable(
            f'the Secret {name} lacks the label {SECRET_LABEL}: "true", without which no MetricSource may use it'
        )
    return secret.data or {}


def _decode_entry(base64_text: str, subject: str) -> str:
    """The text of a Secret's entry; `subject` names it in the message. Raises CredentialsUnavailable."""
    try:
        return base64.b64decode(base64_text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise CredentialsUnavailable(f"{subject} is no text in UTF-8") from None


def redacted(text: str, credential_values: Iterable[str]) -> str:
    """One line of `text`, shortened, with HIDDEN in place of the values of credentials and of user info in URLs."""
    forms = {
        form for credential_value in credential_values if credential_value for form in _written_forms(credential_value)
    }
    for form in sorted(forms, key=len, reverse=True):  # longest first: a form may contain another one
        text = text.replace(form, HIDDEN)
    line = " ".join(_USER_INFO.sub(rf"\1{HIDDEN}@", text).split())
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]}..."


def _written_forms(credential_value: str) -> Iterator[str]:
    """The forms that a value may have in a text: unchanged, escaped in a URL, in a literal, in JSON, in base64."""
    yield credential_value
    if stripped := credential_value.strip():
        yield stripped
    yield quote(credential_value)
    yield quote(credential_value, safe="")
    yield quote_plus(credential_value)
    yield repr(credential_value)[1:-1]
    yield json.dumps(credential_value)[1:-1]
    yield base64.b64encode(credential_value.encode()).decode()
