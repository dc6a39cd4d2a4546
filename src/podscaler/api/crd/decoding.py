"""Bodies of custom objects: pruned, without idle nulls, with clean metadata; what was odd is told.

`podscaler.api.crd.records` gives it to the API server as `Version.decode`, in place of `podscaler.api.schema.decoding`.

Source: the behaviour of the API server with custom resources; the messages of fieldValidation=Strict.
"""

from collections.abc import Mapping
from typing import Any

from podscaler.api.crd import defaulting, object_metadata, pruning
from podscaler.api.crd.structural import META_FIELDS, Structural
from podscaler.api.resource.resources import Object
from podscaler.api.schema.decoding import Decoded
from podscaler.api.text import json_text, quoting
from podscaler.api.text.json_text import DecodeError, Repeated

ANYTHING = Structural(preserves_unknown=True)


def decoded(value: Any, group: str, schemas: Mapping[str, Structural]) -> Decoded:
    """The object of a parsed body. Raises DecodeError.

    Args:
        value: the parsed body.
        group: of the kind; what is of another group is left as it is.
        schemas: of the kind, by apiVersion; in a version that there is not, every field is unknown.
    """
    if not isinstance(value, dict):
        raise DecodeError("json: cannot unmarshal array into Go value of type map[string]interface {}")
    problems = [f"duplicate field {quoting.quoted(path)}" for path in _repeated(value, "")]
    plain: Object = json_text.plain(value)
    metadata, found = object_metadata.decoded(plain.get("metadata") or {})
    problems += found
    api_version = plain.get("apiVersion")
    of_group = isinstance(api_version, str) and api_version.rpartition("/")[0] == group
    schema = schemas.get(str(api_version), pruning.NOTHING) if of_group else ANYTHING
    problems += [f"unknown field {quoting.quoted(path)}" for path in pruning.prune(plain, schema)]
    defaulting.drop_nulls(plain, schema)
    problems += object_metadata.coerce_embedded(plain, schema)
    rest = {name: plain[name] for name in sorted(plain) if name not in META_FIELDS}
    return Decoded({"metadata": metadata, **rest}, tuple(dict.fromkeys(problems)))


def _repeated(value: Any, path: str) -> list[str]:
    """The paths of members that stand a second time."""
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in _repeated(item, f"{path}[{index}]")]
    if not isinstance(value, dict):
        return []
    found: list[str] = []
    seen: set[str] = set()
    for name, member in value.pairs if isinstance(value, Repeated) else value.items():
        below = f"{path}.{name}" if path else name
        found += [below] if name in seen else []
        seen.add(name)
        found += _repeated(member, below)
    return found
