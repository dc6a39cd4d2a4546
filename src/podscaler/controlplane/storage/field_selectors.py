"""Parses field selectors; called by `storage.selection_predicate` for lists and watches.

`apiserver.dispatch` and `apiserver.handlers.review_selectors` call `parse` for authorization. A new selectable field
goes into `Resource.fields` of its kind; an exception of a kind in the messages into one of the sets below.

`status.phase=Running,spec.nodeName!=n1` becomes `(Term("spec.nodeName", "n1", negated=True), Term("status.phase",
"Running"))`. A backslash escapes `,`, `=` and itself in a value.

Source: k8s.io/apimachinery/pkg/fields (documented syntax), the captures `field-selector-*`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from podscaler.api.text import quoting

METADATA_FIELDS = frozenset({"metadata.name", "metadata.namespace"})
_KINDS_WITHOUT_NAMESPACE_FIELD = frozenset({"Namespace", "Node"})
"""Kinds for which metadata.namespace is not selectable."""
_KINDS_IN_MESSAGE = frozenset({"Job"})
"""Kinds whose error message for an unsupported field contains the kind."""


class FieldSelectorError(ValueError):
    """An invalid field selector, or a field that is not selectable; the text is kube-apiserver's message."""


@dataclass(frozen=True, slots=True)
class Term:
    """One requirement: the field equals (or, if `negated`, does not equal) the value; an absent field is empty."""

    field: str
    value: str
    negated: bool = False

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether an object with these fields meets the requirement."""
        return (fields.get(self.field, "") == self.value) != self.negated


def parse(selector: str) -> tuple[Term, ...]:
    """The requirements, sorted by their text; empty for an empty text. Raises FieldSelectorError."""
    requirements = [requirement for requirement in sorted(_split_unescaped(selector, ",")) if requirement]
    terms = [_parse_term(requirement, selector) for requirement in requirements]
    return tuple(term for term in terms if term.field or term.value)  # `=` selects everything, as kube-apiserver


def check_known(
    terms: tuple[Term, ...], selectable: Collection[str], *, is_custom: bool = False, kind: str = ""
) -> None:
    """Raise FieldSelectorError for the first field that is neither of metadata nor in `selectable`.

    The message depends, as kube-apiserver's, on `kind`, and on whether the kind has selectable fields of its own or
    `is_custom` (a custom resource).
    """
    for term in terms:
        if term.field in selectable or (term.field in METADATA_FIELDS and not _is_unselectable(term.field, kind)):
            continue
        if kind in _KINDS_IN_MESSAGE:
            raise FieldSelectorError(f'field label "{term.field}" not supported for {kind}')
        if selectable or is_custom:
            raise FieldSelectorError(f"field label not supported: {term.field}")
        raise FieldSelectorError(
            f'{quoting.quoted(term.field)} is not a known field selector: only "metadata.name", "metadata.namespace"'
        )


def _is_unselectable(field: str, kind: str) -> bool:
    """Whether a field of METADATA_FIELDS is not selectable for a kind."""
    return field == "metadata.namespace" and kind in _KINDS_WITHOUT_NAMESPACE_FIELD


def _split_unescaped(text: str, separator: str) -> list[str]:
    """`text` split at each separator without a backslash before it; escapes are kept."""
    parts = [""]
    escaped = False
    for char in text:
        if char == separator and not escaped:
            parts.append("")
            continue
        escaped = char == "\\" and not escaped
        parts[-1] += char
    return parts


def _parse_term(requirement: str, selector: str) -> Term:
    """The term that a requirement states, at its first operator; `selector` is the whole text, for the error.

    Raises FieldSelectorError.
    """
    for index in range(len(requirement)):
        for operator in ("!=", "==", "="):
            if requirement.startswith(operator, index):
                field_value = _unescaped(requirement[index + len(operator) :])
                return Term(requirement[:index], field_value, negated=operator == "!=")
    raise FieldSelectorError(f"invalid selector: '{selector}'; can't understand '{requirement}'")


def _unescaped(escaped_value: str) -> str:
    r"""A value without its escapes: `a\,b` becomes `a,b`. Raises FieldSelectorError."""
    plain = ""
    escaped = False
    for char in escaped_value:
        if escaped:
            if char not in "\\,=":
                raise FieldSelectorError(f"invalid field selector: invalid escape sequence: \\{char}")
            plain, escaped = plain + char, False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise FieldSelectorError(f"invalid field selector: unescaped character in value: {ord(char)}")
        else:
            plain += char
    if escaped:
        raise FieldSelectorError("invalid field selector: invalid escape sequence: \\")
    return plain
