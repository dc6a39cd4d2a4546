"""Descriptions of the API types and their fields, in our own words, for OpenAPI and `kubectl explain`.

Used by `openapi_schemas` and for the descriptions of columns of Tables.

The texts stand in data/descriptions/*.toml, one table for each message, with the message's own text under `_`. A field
without a text there may have one in the table `common` (`metadata`, `kind`, ...), which holds for all messages. A
package of an old version has only the texts that differ from those of the version after it.
"""

import tomllib
from functools import cache
from importlib import resources

_OWN = "_"
_COMMON = "common"
_SUCCESSORS = {
    "autoscaling/v2alpha1": "autoscaling/v2beta1",
    "autoscaling/v2beta1": "autoscaling/v2beta2",
    "autoscaling/v2beta2": "autoscaling/v2",
    "extensions/v1beta1": "autoscaling/v1",
}


def of_message(message: str) -> str:
    """The text of a message (`apps/v1.Deployment`), empty where there is none."""
    return _text(message, _OWN)


def of_field(message: str, field: str) -> str:
    """The text of a message's field (JSON name), empty where there is none."""
    return _text(message, field) or _texts()[_COMMON].get(field, "")


def _text(message: str, name: str) -> str:
    """A text of the message, or of the message of that name in the package's successor."""
    found = _texts().get(message, {}).get(name, "")
    package, _, short_name = message.rpartition(".")
    if found or package not in _SUCCESSORS:
        return found
    return _text(f"{_SUCCESSORS[package]}.{short_name}", name)


@cache
def _texts() -> dict[str, dict[str, str]]:
    texts: dict[str, dict[str, str]] = {}
    for file in (resources.files("podscaler.api.schema.data") / "descriptions").iterdir():
        texts |= tomllib.loads(file.read_text(encoding="utf-8"))
    return texts
