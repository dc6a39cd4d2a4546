"""Patterns of custom resources match as Python's matcher has it, and in linear time."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podscaler.api.machinery import linear_patterns

LEAVES = st.sampled_from(
    [
        "a",
        "b",
        "c",
        ".",
        "[ab]",
        "[^a]",
        "[a-b_]",
        r"\d",
        r"\w",
        r"\W",
        r"[\s\d]",
        "^",
        "$",
        r"\b",
        r"\B",
        r"\.",
        "é",
        "",
    ]
)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = inner.map(lambda text: f"(?:{text})")
    counts = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?"])
    return (
        st.builds(str.__add__, inner, inner)
        | st.builds("({}|{})".format, inner, inner)
        | st.builds(str.__add__, group, counts)
    )


PATTERNS = st.recursive(LEAVES, _larger, max_leaves=8)
TEXTS = st.text("abc_1 é.", min_size=1, max_size=8)  # of an empty one, Python 3.11 says that \\B does not match
ENDLESS = ("^(a+)+$", "(a|a)*b", "a*a*a*a*a*b", "(.*,){20}x", "^([a-z0-9]+-?)+$", "[a-z]+$")


@given(PATTERNS, TEXTS)
def test_matches_as_python_does(pattern: str, text: str) -> None:
    """Whatever the pattern, with classes of ASCII, texts of one line match as they do in Python."""
    matcher = linear_patterns.Matcher(pattern)
    assert matcher(text) == bool(re.search(pattern, text, re.ASCII))


@pytest.mark.parametrize("pattern", ENDLESS)
def test_linear_time(pattern: str) -> None:
    """A hundred thousand characters, on which backtracking would not end, take less than ten seconds."""
    matcher = linear_patterns.Matcher(pattern)
    began_s = time.process_time()
    assert not matcher("a" * 100_000 + "!")
    assert time.process_time() - began_s < 10


@pytest.mark.parametrize(
    ("pattern", "text", "matches"), [("a$", "a\n", False), (r"\B", "", True), (r"\d", "٣", False), (r"\s", "\v", False)]
)
def test_what_re2_has_otherwise(pattern: str, text: str, matches: bool) -> None:
    """The end is the end of the text, and classes are of ASCII."""
    assert linear_patterns.Matcher(pattern)(text) == matches


@pytest.mark.parametrize("pattern", ["(?i)a", "(?s:a)", r"(a)\1", "a(?=b)", "(?P<n>a)(?P=n)", "((a{100}){100}){100}"])
def test_what_cannot_be_matched_so(pattern: str) -> None:
    """Flags, what RE2 does not have, and what is too large."""
    assert linear_patterns.matcher(pattern) is None
