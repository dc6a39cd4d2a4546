"""Field selectors: `status.phase=Running,spec.nodeName!=n1` as requirements.

Called by `selecting`. Source: k8s.io/apimachinery/pkg/fields (documented syntax), the captures `field-selector-*`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from podscaler.api.text import quoting

METADATA_FIELDS = frozenset({"metadata.name", "metadata.namespace"})
_WITHOUT_NAMESPACE = frozenset({"Namespace", "Node"})
_KINDS_THAT_NAME_THEMSELVES = frozenset({"Job"})
"""Whose refusal of a field is worded in a way of their own."""


class FieldSelectorError(ValueError):
    """The text is no field selector, or names a field that cannot be selected; upstream's sentence."""


@dataclass(frozen=True, slots=True)
class Term:
    """One requirement: the field is (or, if `negated`, is not) this text. An absent field is the empty text."""

    field: str
    value: str
    negated: bool = False

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether an object with these fields meets it."""
        return (fields.get(self.field, "") == self.value) != self.negated


def parse(text: str) -> tuple[Term, ...]:
    """The requirements, sorted as upstream checks them; empty for an empty text. Raises FieldSelectorError."""
    terms = (_term(part, text) for part in sorted(_split(text, ",")) if part)
    return tuple(term for term in terms if term.field or term.value)  # upstream takes `=` for everything


def check_known(
    terms: tuple[Term, ...], selectable: Collection[str], *, is_custom: bool = False, kind: str = ""
) -> None:
    """Raise FieldSelectorError for the first field that is neither of metadata nor in `selectable`.

    Differs: upstream's sentence depends on whether the kind registered fields of its own, and so does ours.
    """
    for term in terms:
        if term.field in selectable or (term.field in METADATA_FIELDS and not _is_hidden(term.field, kind)):
            continue
        if kind in _KINDS_THAT_NAME_THEMSELVES:
            raise FieldSelectorError(f'field label "{term.field}" not supported for {kind}')
        if selectable or is_custom:
            raise FieldSelectorError(f"field label not supported: {term.field}")
        raise FieldSelectorError(
            f'{quoting.quoted(term.field)} is not a known field selector: only "metadata.name", "metadata.namespace"'
        )


def _is_hidden(name: str, kind: str) -> bool:
    """Whether a kind that lists its own fields leaves out its namespace, having none."""
    return name == "metadata.namespace" and kind in _WITHOUT_NAMESPACE


def _split(text: str, separator: str) -> list[str]:
    """`text` cut at each separator that has no backslash before it; escapes stay."""
    parts = [""]
    escaped = False
    for char in text:
        if char == separator and not escaped:
            parts.append("")
            continue
        escaped = char == "\\" and not escaped
        parts[-1] += char
    return parts


def _term(part: str, text: str) -> Term:
    for index in range(len(part)):
        for operator in ("!=", "==", "="):
            if part.startswith(operator, index):
                value = _unescaped(part[index + len(operator) :])
                return Term(part[:index], value, negated=operator == "!=")
    raise FieldSelectorError(f"invalid selector: '{text}'; can't understand '{part}'")


def _unescaped(value: str) -> str:
    plain = ""
    escaped = False
    for char in value:
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
