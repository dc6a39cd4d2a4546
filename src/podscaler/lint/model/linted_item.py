"""One object that is linted: as written, with defaults, and where in a file or cluster it is from.

`podscaler.lint.model.reading` makes Items, and every rule reads them. Items are immutable. The objects of unknown kinds
are not validated: rules read their values by `mapping`, `mappings` and `text`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from podscaler.api.resource.resources import Object

IGNORE_ANNOTATION = "podscaler.dev/lint-ignore"
"""The annotation with the ids of rules that are switched off for an object, separated by commas."""


@dataclass(frozen=True, slots=True)
class DocumentOrigin:
    """Where an object is from.

    Attributes:
        file: the path, as messages name it; empty for an object of a cluster.
        line: the first line of its document, counted from 1.
        text: the document, from which the linter computes the lines of fields.
        path: the object's path within its document (`items[2]`); empty if it is the document itself.
    """

    file: str = ""
    line: int = 1
    text: bytes = field(default=b"", repr=False)
    path: str = ""

    @property
    def is_live(self) -> bool:
        """Whether the object is one of a cluster."""
        return not self.file


@dataclass(frozen=True, slots=True)
class Key:
    """The identity of an object. `kind` is in lower case, because references are compared without case."""

    group: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class APIError:
    """An error with which the API server rejects an object: the field (empty if the text names it), and its text."""

    field: str
    text: str


@dataclass(frozen=True, slots=True)
class Item:
    """One object.

    Attributes:
        api_version, kind: as written.
        namespace: the one it would be created in; empty for objects outside of namespaces.
        name: its name, or the prefix of a generated one.
        written: the decoded object as written; for an unknown kind, the plain value.
        obj: the object with the API's defaults, in the storage version; empty if it cannot be decoded.
        origin: the file or cluster that it is from.
        api_errors: those with which the API server would reject the object; empty if there are none.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    written: Object
    obj: Object
    origin: DocumentOrigin = DocumentOrigin()
    api_errors: tuple[APIError, ...] = ()

    @property
    def group(self) -> str:
        """The API group, empty for core."""
        return group_of(self.api_version)

    @property
    def key(self) -> Key:
        """Its identity."""
        return Key(self.group, self.kind.lower(), self.namespace, self.name)

    @property
    def full_name(self) -> str:
        """The name of the object in messages: `Deployment shop/web`."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def spec(self) -> Object:
        """The spec with defaults; empty if there is none."""
        return mapping(self.obj.get("spec"))

    @property
    def ignored_rule_ids(self) -> tuple[str, ...]:
        """The ids of the rules that IGNORE_ANNOTATION switches off, as written."""
        rule_ids = mapping(mapping(self.written.get("metadata")).get("annotations")).get(IGNORE_ANNOTATION)
        if not isinstance(rule_ids, str):
            return ()
        return tuple(rule_id.strip() for rule_id in rule_ids.split(",") if rule_id.strip())


def group_of(api_version: str) -> str:
    """The group of an apiVersion, empty for core."""
    return api_version.rpartition("/")[0]


def mapping(json_value: Any) -> Object:
    """The value where it is an object, else an empty one: objects of unknown kinds are not validated."""
    return dict(json_value) if isinstance(json_value, Mapping) else {}


def mappings(json_value: Any) -> Iterator[Object]:
    """The objects of a list; nothing where it is none."""
    if isinstance(json_value, list):
        yield from (element for element in json_value if isinstance(element, dict))


def text(json_value: Any) -> str:
    """The value where it is a text, else the empty one."""
    return json_value if isinstance(json_value, str) else ""
