"""What is wrong with keys and values inside a selector, and how several faults are told together.

Source: docs/spec/decision.md 12.2 (Canonical selector string) to 12.4 (Converting a metric's selector). Single faults
of the grammar are in test_api_selectors.py.
"""

from typing import Any

import pytest

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import SelectorError

FORM = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
NAME = f"name part {FORM}"
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
PREFIX = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and"
    " must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
SLASHES = f"a valid label key {FORM} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
LONG, DASHED = "a" * 64, "-" + "a" * 63
FAR = "a" * 254

KEYS = [
    ("-a", NAME),
    (LONG, "name part must be no more than 63 bytes"),
    (DASHED, f"name part must be no more than 63 bytes; {NAME}"),
    ("example.com/", f"name part must be non-empty; {NAME}"),
    ("/a", "prefix part must be non-empty"),
    ("X/a", PREFIX),
    ("X/-", f"{PREFIX}; {NAME}"),
    (f"{FAR}/a", "prefix part must be no more than 253 bytes"),
    ("a/b/c", SLASHES),
]


@pytest.mark.parametrize(("key", "rule"), KEYS, ids=[key[:20] for key, _ in KEYS])
@pytest.mark.parametrize("requirement", ["{}=x", "{}", "!{}", "{} in (-x)", "{}>-x"])
def test_keys_in_texts(requirement: str, key: str, rule: str) -> None:
    """A bad key is told with all its faults, before its values are looked at."""
    with pytest.raises(SelectorError) as caught:
        selectors.parse(requirement.format(key))
    assert str(caught.value) == f'unable to parse requirement: <nil>: Invalid value: "{key}": {rule}'


@pytest.mark.parametrize(("key", "rule"), KEYS, ids=[key[:20] for key, _ in KEYS])
def test_keys_in_objects(key: str, rule: str) -> None:
    """In an object the same rules apply, under another path."""
    with pytest.raises(SelectorError) as caught:
        selectors.from_label_selector({"matchExpressions": [{"key": key, "operator": "Exists"}]})
    assert str(caught.value) == f'key: Invalid value: "{key}": {rule}'


VALUES = [("-b", VALUE), (LONG, "must be no more than 63 bytes"), (DASHED, f"must be no more than 63 bytes; {VALUE}")]


@pytest.mark.parametrize(("value", "rule"), VALUES, ids=["form", "length", "both"])
def test_values(value: str, rule: str) -> None:
    """A bad value is told with its key, all its faults and its place, which is that after sorting for texts only."""
    told = f'Invalid value: "{value}": {rule}'
    with pytest.raises(SelectorError) as in_text:
        selectors.parse(f"a in (b,{value})")
    with pytest.raises(SelectorError) as in_object:
        selectors.from_label_selector({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", value]}]})
    assert str(in_text.value) == f"unable to parse requirement: values[0][a]: {told}"
    assert str(in_object.value) == f"values[1][a]: {told}"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("b,a", "a,b"),
        ("k in (y,x)", "k in (x,y)"),
        ("k notin (y,x,y)", "k notin (x,y)"),
        ("e,k in (x,y),b=2,a=1", "a=1,b=2,e,k in (x,y)"),
        ("k>1,j<2", "j<2,k>1"),
        ("!k", "!k"),
    ],
)
def test_query_texts(text: str, canonical: str) -> None:
    """What is sent in queries is sorted by key and free of blanks."""
    assert str(selectors.parse(text)) == canonical


@pytest.mark.parametrize("empty", [None, {}, {"matchLabels": {}}, {"matchLabels": None, "matchExpressions": []}])
def test_empty_objects(empty: dict[str, Any] | None) -> None:
    """Nothing and an empty object send no selector."""
    assert str(selectors.from_label_selector(empty)) == ""
