"""Label selectors: parsed from text and from LabelSelector objects, matched against labels.

    parse("app=web,tier!=db").matches({"app": "web"})                    True
    from_label_selector({"matchLabels": {"app": "web"}})                 the same as parse("app=web")

Called by the API server (`labelSelector=` parameters), by controllers (objects' `spec.selector`) and by the decision
core (the selector of a scale, the selectors of metrics). A new operator: `requirements` and `selector_text`; one of
LabelSelector objects, `_OBJECT_OPERATORS`, too.

Invariants: a Selector is immutable and its requirements are valid. The selector without requirements matches
everything; NOTHING matches nothing.

Source: Kubernetes v1.37.0, label selectors (docs/spec/decision.md 12.1 (Label selector inside a message) to 12.4
(Converting a metric's selector)).
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from podscaler.api.machinery import selector_text
from podscaler.api.machinery.requirements import ANY_OF, Operator, Requirement, SelectorError, requirement
from podscaler.api.text.quoting import quoted

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "Selector",
    "SelectorError",
    "from_label_selector",
    "from_labels",
    "go_text",
    "parse",
]

_OBJECT_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


class Selector(msgspec.Struct, frozen=True):
    """Requirements that an object must all satisfy.

    Attributes:
        requirements: in the order of the text or object.
        equalities: (key, value) of the requirements of the form `key=value`, which are matched first.
        others: the requirements that are not in `equalities`.
        matches_nothing: whether this is NOTHING.
    """

    requirements: tuple[Requirement, ...] = ()
    equalities: tuple[tuple[str, str], ...] = ()
    others: tuple[Requirement, ...] = ()
    matches_nothing: bool = False

    def __str__(self) -> str:
        """The canonical text: requirements sorted by key; empty for everything and for NOTHING."""
        return ",".join(map(str, sorted(self.requirements, key=lambda requirement: requirement.key)))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels matches."""
        for key, value in self.equalities:
            if labels.get(key) != value:
                return False
        for condition in self.others:
            if not condition.matches(labels):
                return False
        return not self.matches_nothing


EVERYTHING = Selector()
NOTHING = Selector(matches_nothing=True)


def _from_requirements(requirements: Sequence[Requirement]) -> Selector:
    """The selector with these requirements; EVERYTHING without any."""
    return Selector(
        tuple(requirements),
        tuple((condition.key, condition.values[0]) for condition in requirements if _is_equality(condition)),
        tuple(condition for condition in requirements if not _is_equality(condition)),
    )


def _is_equality(requirement: Requirement) -> bool:
    return requirement.operator in ANY_OF and len(requirement.values) == 1


@lru_cache(maxsize=16384)
def parse(text: str) -> Selector:
    """The selector of a text like `a=1,b in (x,y),!c`; EVERYTHING for the empty text.

    Raises SelectorError.
    """
    return _from_requirements(selector_text.parse(text))


def from_label_selector(selector: Mapping[str, Any] | None) -> Selector:
    """The selector of a LabelSelector object (`matchLabels`, `matchExpressions`; JSON-ready).

    NOTHING for None, EVERYTHING for an empty object. Raises SelectorError for the first invalid requirement, of
    matchLabels in the order of their keys, then of matchExpressions.
    """
    if selector is None:
        return NOTHING
    labels = selector.get("matchLabels") or {}
    return _from_requirements(
        [requirement(key, Operator.EQUALS, [labels[key]]) for key in sorted(labels)]
        + [_from_expression(expression) for expression in selector.get("matchExpressions") or ()]
    )


def _from_expression(expression: Mapping[str, Any]) -> Requirement:
    """The requirement of an item of matchExpressions. Raises SelectorError."""
    operator_name = expression.get("operator") or ""
    operator = _OBJECT_OPERATORS.get(operator_name)
    if operator is None:
        raise SelectorError(f"{quoted(operator_name)} is not a valid label selector operator")
    return requirement(expression.get("key") or "", operator, expression.get("values") or [])


def from_labels(labels: Mapping[str, str]) -> Selector:
    """The selector of a map of labels (of a Service or ReplicationController), which is not validated."""
    return _from_requirements([Requirement(key, Operator.EQUALS, (labels[key],)) for key in sorted(labels)])


def go_text(selector: Mapping[str, Any] | None) -> str:
    """A LabelSelector object as Go prints it in messages (`&LabelSelector{...}`, `nil`).

    Source: docs/spec/decision.md 12.1.
    """
    if selector is None:
        return "nil"
    labels = selector.get("matchLabels") or {}
    pairs = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    expressions = "".join(map(_shown_expression, selector.get("matchExpressions") or ()))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _shown_expression(expression: Mapping[str, Any]) -> str:
    """An item of matchExpressions as Go prints it in messages."""
    key, operator = expression.get("key") or "", expression.get("operator") or ""
    values = " ".join(expression.get("values") or ())
    return f"LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"
