"""The subset of Go's templates that rules are written in."""

import pytest

from podscaler.adapter.go_template.lexing import TemplateError
from podscaler.adapter.go_template.template import Template

DATA = {
    "Series": "hits",
    "LabelMatchers": 'pod="a"',
    "GroupBy": "pod,app",
    "GroupBySlice": ["pod", "app"],
    "LabelValuesByName": {"pod": "a|b", "app": "c"},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)", 'sum(hits{pod="a"}) by (pod,app)'),
        ("<< .Series >>", "hits"),
        ("<<$.Series>>", "hits"),
        ("a <<- .Series ->> b", "ahitsb"),
        ("a<</* no >> end */>>b", "ab"),
        ("<<index .GroupBySlice 1>>", "app"),
        ('<<index .LabelValuesByName "pod">>', "a|b"),
        ('<<index .LabelValuesByName "none">>', ""),
        ('<<.LabelValuesByName.pod>>|<<(index .GroupBySlice 0) | printf "%s=%q" "x">>', 'a|b|x="pod"'),
        ("<<len .GroupBySlice>><<slice .Series 1 3>>", "2it"),
        ("<<range .GroupBySlice>>[<<.>>]<<end>>", "[pod][app]"),
        ("<<range $i, $label := .GroupBySlice>><<if $i>>,<<end>><<$label>><<end>>", "pod,app"),
        ("<<range $key, $value := .LabelValuesByName>><<$key>>=<<$value>>;<<end>>", "app=c;pod=a|b;"),
        ('<<if eq .Series "x" "hits">>a<<else>>b<<end>>', "a"),
        ('<<if and .Series (ne .Series "hits")>>a<<else if not .Series>>b<<else>>c<<end>>', "c"),
        ("<<with $x := .Series>><<$x>><<.>><<else>>none<<end>>", "hitshits"),
        ('<<$x := "a">><<$x = "b">><<$x>>', "b"),
        ('<<or "" .Series>><<true>><<.GroupBySlice>><<.LabelValuesByName>>', "hitstrue[pod app]map[app:c pod:a|b]"),
        ('<<print "a" 1 2 "b">><<println 1>>', "a1 2b1\n"),
        ("<<urlquery .LabelMatchers>><<html .LabelMatchers>>", "pod%3D%22a%22pod=&#34;a&#34;"),
    ],
)
def test_templates(text: str, expected: str) -> None:
    """Text, fields, functions, pipelines, variables and blocks."""
    assert Template(text).execute(DATA) == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("<<.Series", "unclosed action"),
        ("<<>>", "missing value for command"),
        ("<<if .Series>>a", "if without end"),
        ("<<end>>", "unexpected end"),
        ("<<nope>>", 'function "nope" not defined'),
        ('<<template "a">>', "template is not supported in a rule"),
        ("<<.Series | .GroupBy>>", "a command behind | is not a function"),
        ("<<.Series 1>>", "a value that is not a function has arguments"),
        ("<<(.Series>>", "unclosed left paren"),
        ("<<'>>", 'unexpected "\'" in action "\'"'),
        ('<<"\\z">>', "invalid escape \\z in a string"),
    ],
)
def test_what_cannot_be_parsed(text: str, error: str) -> None:
    """A template with an error cannot be made."""
    with pytest.raises(TemplateError) as raised:
        Template(text)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("<<.Other>>", "can't evaluate field Other"),
        ("<<$x>>", 'undefined variable "$x"'),
        ("<<index .GroupBySlice 5>>", "error calling index: index out of range: 5"),
        ("<<index .Series 0>>", "error calling index: cannot index hits with 0"),
        ("<<range .Series>><<end>>", "range can't iterate over hits"),
        ('<<printf "%x" 1>>', "error calling printf: the verb %x is not supported"),
        ('<<printf "%s">>', "error calling printf: no argument for %s"),
        ("<<eq 1 .Series>>", "incompatible types for comparison"),
        ("<<lt 1 .Series>>", "incompatible types for comparison"),
        ("<<lt nil nil>>", "invalid type for comparison"),
        ("<<ge .LabelValuesByName .LabelValuesByName>>", "invalid type for comparison"),
        ("<<lt .GroupBySlice .GroupBySlice>>", "invalid type for comparison"),
        ("<<lt false true>>", "invalid type for comparison"),
        ("<<slice 5 1>>", "error calling slice: cannot slice this value"),
        ("<<slice .LabelValuesByName>>", "error calling slice: cannot slice this value"),
        ("<<slice .Series .Series>>", "error calling slice: cannot slice this value"),
        ("<<slice .Series 0 1 2>>", "error calling slice: too many slice indexes: 3"),
        ("<<slice .Series 3 1>>", "error calling slice: index out of range"),
        ("<<not>>", "wrong number or type of arguments for not"),
    ],
)
def test_what_cannot_be_executed(text: str, error: str) -> None:
    """An error of an execution names what is wrong."""
    with pytest.raises(TemplateError) as raised:
        Template(text).execute(DATA)
    assert str(raised.value) == error
