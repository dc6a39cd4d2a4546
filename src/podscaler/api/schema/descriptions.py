"""Descriptions of the API types and their fields, in our own words, for OpenAPI and `kubectl explain`.

    of_field("autoscaling/v2.HorizontalPodAutoscalerSpec", "maxReplicas")      "The most replicas; not less than
    minReplicas."

Used by `openapi_schemas`. The texts are in data/descriptions/*.toml: a table for each message, with the text of the
message itself under the key `_`. The table `common` has texts of fields that all messages share (`metadata`, `kind`,
...). An old version of an API has only the texts that differ from those of its successor (`_SUCCESSORS`). A new text:
the file with the messages of its package.
"""

import tomllib
from functools import cache
from importlib import resources

_MESSAGE_KEY = "_"
_COMMON_TABLE = "common"
_SUCCESSORS = {
    "autoscaling/v2alpha1": "autoscaling/v2beta1",
    "autoscaling/v2beta1": "autoscaling/v2beta2",
    "autoscaling/v2beta2": "autoscaling/v2",
    "extensions/v1beta1": "autoscaling/v1",
}
"""Package of an old version -> the package with the texts that it shares."""


def of_message(message: str) -> str:
    """The text of a message (`apps/v1.Deployment`); empty without one."""
    return _find_text(message, _MESSAGE_KEY)


def of_field(message: str, field: str) -> str:
    """The text of a message's field (JSON name); empty without one."""
    return _find_text(message, field) or _texts()[_COMMON_TABLE].get(field, "")


def _find_text(message: str, key: str) -> str:
    """A text of the message, or of the message of that name in the package's successor."""
    description = _texts().get(message, {}).get(key, "")
    package, _, short_name = message.rpartition(".")
    if description or package not in _SUCCESSORS:
        return description
    return _find_text(f"{_SUCCESSORS[package]}.{short_name}", key)


@cache
def _texts() -> dict[str, dict[str, str]]:
    """Message -> key (a field, or _MESSAGE_KEY) -> text."""
    texts_by_message: dict[str, dict[str, str]] = {}
    for file in (resources.files("podscaler.api.schema.data") / "descriptions").iterdir():
        texts_by_message |= tomllib.loads(file.read_text(encoding="utf-8"))
    return texts_by_message
