"""What the API types and their fields are for, in our own words: the prose of OpenAPI and of `kubectl explain`.

Called by openapi_schemas, and by whoever describes a column of a Table with its field's text.

The texts stand in data/descriptions/*.toml, one table for each message, with the message's own text under `_`. A field
without a text there may have one in the table `common` (`metadata`, `kind`, ...), which holds for all messages.
"""

import tomllib
from functools import cache
from importlib import resources

_OWN = "_"
_COMMON = "common"


def of_message(message: str) -> str:
    """The text of a message (`apps/v1.Deployment`), empty where there is none."""
    return _texts().get(message, {}).get(_OWN, "")


def of_field(message: str, field: str) -> str:
    """The text of a message's field (JSON name), empty where there is none."""
    texts = _texts()
    return texts.get(message, {}).get(field) or texts[_COMMON].get(field, "")


@cache
def _texts() -> dict[str, dict[str, str]]:
    texts: dict[str, dict[str, str]] = {}
    for file in (resources.files("podscaler.api.data") / "descriptions").iterdir():
        texts |= tomllib.loads(file.read_text(encoding="utf-8"))
    return texts
