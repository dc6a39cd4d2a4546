"""Selectors in questions about access."""

from typing import Any

import pytest

from podscaler.controlplane.apiserver.handlers import review_selectors

P = "spec.resourceAttributes"
LABELS, FIELDS = f"{P}.labelSelector", f"{P}.fieldSelector"


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({"labelSelector": {"rawSelector": "a=b"}}, [], id="a text"),
        pytest.param(
            {"labelSelector": {"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "Exists"}]}},
            [f'{LABELS}.rawSelector: Invalid value: "a=b": may not specified at the same time as requirements'],
            id="both forms",
        ),
        pytest.param(
            {"fieldSelector": {}},
            [
                f"{FIELDS}.requirements: Required value: when {P}.fieldSelector is specified, requirements or "
                "rawSelector is required"
            ],
            id="neither form",
        ),
        pytest.param(
            {"fieldSelector": {"requirements": [{"operator": "In"}]}},
            [
                f"{FIELDS}.requirements[0].key: Required value: must be specified",
                f"{FIELDS}.requirements[0].values: Required value: must be specified when `operator` is 'In' or "
                "'NotIn'",
            ],
            id="without key and values",
        ),
        pytest.param(
            {"labelSelector": {"requirements": [{"key": "a", "operator": "Exists", "values": ["x"]}]}},
            [
                f"{LABELS}.requirements[0].values: Forbidden: may not be specified when `operator` is 'Exists' "
                "or 'DoesNotExist'"
            ],
            id="values that nobody needs",
        ),
        pytest.param(
            {"labelSelector": {"requirements": [{"key": "a", "operator": "Newer"}]}}, [], id="an operator of tomorrow"
        ),
    ],
)
def test_faults(attributes: dict[str, Any], expected: list[str]) -> None:
    """A selector has one of two forms, and requirements that can be understood."""
    assert [str(each) for each in review_selectors.selector_field_errors(attributes)] == expected


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param({"labelSelector": {"rawSelector": "a=b"}}, "", id="readable"),
        pytest.param(
            {"fieldSelector": {"rawSelector": "!!"}, "labelSelector": {"rawSelector": "=="}},
            f"{P}.fieldSelector ignored due to parse error; {P}.labelSelector ignored due to parse error",
            id="two that are not",
        ),
        pytest.param(
            {"labelSelector": {"requirements": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "X"}]}},
            f"{P}.labelSelector partially ignored due to parse error",
            id="in part",
        ),
    ],
)
def test_evaluation_errors(attributes: dict[str, Any], expected: str) -> None:
    """Who asks is told which selectors nobody looks at."""
    assert review_selectors.evaluation_error(attributes) == expected
