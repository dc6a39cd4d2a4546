"""Validates port numbers, port names and protocols; `path` is that of the field in errors (`spec.ports[0].port`).

Called by the validation of pods, services, ingresses and network policies. A new protocol: PROTOCOLS.

Source: kube-apiserver's messages; the API reference of core/v1.
"""

import re
from typing import Any

from podscaler.api.machinery.field import FieldError, invalid, not_supported, required

PROTOCOLS = ("SCTP", "TCP", "UDP")

_PORT_MAX = 65_535
_OUT_OF_RANGE = "must be between 1 and 65535, inclusive"
_NAME = re.compile(r"[-a-z0-9]+")
_NAME_MAX_CHARACTERS = 15


def number_errors(port: int, path: str) -> list[FieldError]:
    """The field errors of a port number."""
    return [] if 1 <= port <= _PORT_MAX else [invalid(path, port, _OUT_OF_RANGE)]


def protocol_errors(protocol: str, path: str) -> list[FieldError]:
    """The field errors of a protocol, which must be one of PROTOCOLS."""
    if not protocol:
        return [required(path)]
    return [] if protocol in PROTOCOLS else [not_supported(path, protocol, PROTOCOLS)]


def name_messages(name: str) -> list[str]:
    """kube-apiserver's messages about the name of a port, which must be an IANA service name; empty if it is valid."""
    messages = [] if len(name) <= _NAME_MAX_CHARACTERS else ["must be no more than 15 characters"]
    if not _NAME.fullmatch(name):
        messages.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        messages.append("must contain at least one letter (a-z)")
    if "--" in name:
        messages.append("must not contain consecutive hyphens")
    if name and (name[0] == "-" or name[-1] == "-"):
        messages.append("must not begin or end with a hyphen")
    return messages


def target_errors(target: Any, path: str) -> list[FieldError]:
    """The field errors of a reference to a port, by number (int) or by name."""
    if isinstance(target, int):
        return number_errors(target, path)
    return [invalid(path, target, message) for message in name_messages(str(target))]
