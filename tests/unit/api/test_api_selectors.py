"""Label selectors: canonical texts, matching, error texts, conversion of objects.

Source: docs/spec/decision.md 12.1 (Label selector inside a message) to 12.4 (Converting a metric's selector).
"""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import SelectorError, parse

QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
PREFIX = "unable to parse requirement: "


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        (" \t\r\n", ""),
        ("b=2,a=1", "a=1,b=2"),
        ("a==1", "a==1"),
        ("a!=1", "a!=1"),
        ("a = 1 , b", "a=1,b"),
        ("! a", "!a"),
        ("a in (y,x,y)", "a in (x,y)"),
        ("a notin (x)", "a notin (x)"),
        ("a in ()", "a in ()"),
        ("a in (,)", "a in ()"),
        ("a in (,b)", "a in (,b)"),
        ("a in (b,,c)", "a in (,b,c)"),
        ("a in (b,)", "a in (,b)"),
        ("a=", "a="),
        ("a=,b=1", "a=,b=1"),
        ("b<2,a>1", "a>1,b<2"),
        ("in=notin", "in=notin"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("example.com/x=1", "example.com/x=1"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    """A selector prints its requirements sorted by key, without blanks, values sorted and without repetitions."""
    assert str(parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("()", "found '(', expected: !, identifier, or 'end of string'"),
        ("a=b,", "found '', expected: identifier after ','"),
        ("a=b,,c=d", "found ',', expected: identifier after ','"),
        ("a=b c=d", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a b", PREFIX + "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a gt 1", PREFIX + "found 'gt', expected: in, notin, =, ==, !=, gt, lt"),
        ("a!b", PREFIX + "found '!', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in", PREFIX + "found '' expected: '('"),
        ("a notin x", PREFIX + "found 'x' expected: '('"),
        ("a in (x", PREFIX + "found '', expected: ',' or ')'"),
        ("a in (x y)", PREFIX + "found 'y', expected: ',' or ')'"),
        ("a in (=", PREFIX + "found '=', expected: ',', ')' or identifier"),
        ("a in (", PREFIX + "found '', expected: ',', ')' or identifier"),
        ("a in (b,=", PREFIX + "found '=', expected: ',', or identifier"),
        ("a in (b,", PREFIX + "found '', expected: ',', or identifier"),
        ("a=!b", PREFIX + "found '!', expected: identifier"),
        ("!", PREFIX + "found '', expected: identifier"),
        ("!!a", PREFIX + "found '!', expected: identifier"),
        ("-a=b", PREFIX + f'<nil>: Invalid value: "-a": {QUALIFIED}'),
        ("-a=-b", PREFIX + f'<nil>: Invalid value: "-a": {QUALIFIED}'),
        ("a=-b", PREFIX + f'values[0][a]: Invalid value: "-b": {VALUE}'),
        (
            "a in (-b,-c)",
            PREFIX + f'[values[0][a]: Invalid value: "-b": {VALUE}, values[1][a]: Invalid value: "-c": {VALUE}]',
        ),
        (
            "a>x",
            PREFIX + "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            "a<9223372036854775808",
            PREFIX
            + 'values[0]: Invalid value: "9223372036854775808": '
            + "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        ("a>-5", PREFIX + f'values[0][a]: Invalid value: "-5": {VALUE}'),
    ],
)
def test_parse_errors(text: str, message: str) -> None:
    """A text that is no selector is refused with upstream's sentence."""
    with pytest.raises(SelectorError) as caught:
        parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        ("", [{}, {"a": "1"}], []),
        ("a=1", [{"a": "1"}], [{}, {"a": "2"}]),
        ("a!=1", [{}, {"a": "2"}], [{"a": "1"}]),
        ("a in (1,2)", [{"a": "2"}], [{}, {"a": "3"}]),
        ("a notin (1,2)", [{}, {"a": "3"}], [{"a": "1"}]),
        ("a", [{"a": ""}], [{}]),
        ("!a", [{}], [{"a": ""}]),
        ("a>1", [{"a": "2"}, {"a": "+3"}], [{}, {"a": "1"}, {"a": "x"}, {"a": "9223372036854775808"}]),
        ("a<1", [{"a": "0"}, {"a": "-1"}], [{}, {"a": "1"}, {"a": ""}]),
        ("a=1,b=2", [{"a": "1", "b": "2"}], [{"a": "1"}, {"b": "2"}]),
        ("a=,b", [{"a": "", "b": "x"}], [{"b": "x"}]),
    ],
)
def test_matching(text: str, matching: list[dict[str, str]], others: list[dict[str, str]]) -> None:
    """Each operator asks of the label what upstream's asks; requirements must all be met."""
    selector = parse(text)
    assert [selector.matches(labels) for labels in matching + others] == [True] * len(matching) + [False] * len(others)


def test_nothing_and_everything() -> None:
    """An absent LabelSelector matches nothing, an empty one everything; both print as nothing."""
    absent, empty = selectors.from_label_selector(None), selectors.from_label_selector({})
    assert [(str(each), each.matches({})) for each in (absent, empty)] == [("", False), ("", True)]


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    """One matchExpressions entry."""
    return {"key": key, "operator": operator, "values": list(values)}


def test_object_to_canonical_text() -> None:
    """An object becomes its labels as equalities and its expressions; listed values are sorted but not made unique."""
    selector = selectors.from_label_selector(
        {
            "matchLabels": {"b": "2", "a": "1"},
            "matchExpressions": [expression("k", "In", "y", "x", "x"), expression("e", "Exists")],
        }
    )
    assert str(selector) == "a=1,b=2,e,k in (x,x,y)"


@pytest.mark.parametrize(
    ("faulty", "message"),
    [
        (
            {"matchExpressions": [expression("-k", "Near", "-x")]},
            '"Near" is not a valid label selector operator',
        ),
        (
            {"matchExpressions": [expression("k", "In")]},
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            {"matchExpressions": [{"key": "k", "operator": "NotIn", "values": None}]},
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            {"matchExpressions": [expression("k", "Exists", "x")]},
            'values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
        ),
        ({"matchLabels": {"-k": "v"}}, f'key: Invalid value: "-k": {QUALIFIED}'),
        ({"matchLabels": {"k": "-v"}}, f'values[0][k]: Invalid value: "-v": {VALUE}'),
        (
            {"matchExpressions": [expression("-k", "DoesNotExist", "-x")]},
            f'[key: Invalid value: "-k": {QUALIFIED}, values: Invalid value: ["-x"]: values set must be empty for'
            f' exists and does not exist, values[0][-k]: Invalid value: "-x": {VALUE}]',
        ),
        (
            {"matchLabels": {"a": "-", "b": "-"}, "matchExpressions": [expression("c", "Near")]},
            f'values[0][a]: Invalid value: "-": {VALUE}',
        ),
    ],
)
def test_object_errors(faulty: dict[str, Any], message: str) -> None:
    """The first wrong requirement of an object is reported with all of its faults."""
    with pytest.raises(SelectorError) as caught:
        selectors.from_label_selector(faulty)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (None, "nil"),
        ({}, "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}"),
        (
            {
                "matchLabels": {"b": "2", "a": "1"},
                "matchExpressions": [expression("k", "In", "x", "y"), {"key": "e", "operator": "Exists"}],
            },
            "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},"
            "MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},"
            "LabelSelectorRequirement{Key:e,Operator:Exists,Values:[],},},}",
        ),
    ],
    ids=["absent", "empty", "full"],
)
def test_shown_in_messages(selector: dict[str, Any] | None, text: str) -> None:
    """A selector object inside a message has upstream's form."""
    assert selectors.go_text(selector) == text


KEYS = st.sampled_from(["a", "b", "in", "notin", "example.com/x"])
WORDS = st.sampled_from(["", "x", "y", "in", "1.2_3"])
REQUIREMENTS = st.one_of(
    KEYS,
    KEYS.map("!{}".format),
    st.builds("{}{}{}".format, KEYS, st.sampled_from(["=", "==", "!="]), WORDS),
    st.builds("{}{}{}".format, KEYS, st.sampled_from([">", "<"]), st.integers(0, 99)),
    st.builds("{} {} ({})".format, KEYS, st.sampled_from(["in", "notin"]), st.lists(WORDS).map(",".join)),
)
LABELS = st.dictionaries(KEYS, st.sampled_from(["", "x", "y", "in", "7"]))


@given(st.lists(REQUIREMENTS).map(",".join), LABELS)
def test_round_trip(text: str, labels: dict[str, str]) -> None:
    """The canonical text of a selector is read back as a selector with the same text that matches the same labels."""
    selector = parse(text)
    again = parse(str(selector))
    assert (str(again), again.matches(labels)) == (str(selector), selector.matches(labels))


@given(st.text("ab=!(),<> in-\n\x00é"))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the parser fail in another way than by a SelectorError."""
    with suppress(SelectorError):
        parse(text)
