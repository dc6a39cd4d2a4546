"""Patterns of schemas and CEL rules: RE2's syntax with Go's matches and messages (Go 1.26 gave the expected values)."""

import pytest

from podscaler.api.machinery import re2_patterns


@pytest.mark.parametrize(
    ("pattern", "text", "is_match"),
    [
        pytest.param(r"^\pL+$", "éα", True, id="Unicode letters"),
        pytest.param(r"^\pL+$", "é1", False, id="a digit is no letter"),
        pytest.param(r"^\p{Greek}$", "α", True, id="a script"),
        pytest.param(r"^[\p{Lu}\d]+$", "É1", True, id="Unicode class within brackets"),
        pytest.param("(?i)É", "é", True, id="flag at the start"),
        pytest.param("a(?i)b", "aB", True, id="flag in the middle"),
        pytest.param("a(?i)b", "AB", False, id="flag does not apply before it"),
        pytest.param("a(?i:b)c", "aBc", True, id="flag of a group"),
        pytest.param("(?s)^a.b$", "a\nb", True, id="dot matches newline by flag"),
        pytest.param("(?U)^a+$", "aa", True, id="ungreedy"),
        pytest.param("a$", "a\n", False, id="dollar is the end of the text alone"),
        pytest.param(r"a\z", "a", True, id="end of text"),
        pytest.param(r"\d", "٣", False, id="digits are of ASCII"),
        pytest.param(r"\s", "\v", False, id="spaces are of ASCII, without the vertical tab"),
        pytest.param(r"\B", "", True, id="no word boundary in an empty text"),
        pytest.param("[[:^alpha:]]", "a", False, id="negated POSIX class"),
        pytest.param("^[[:word:]]+$", "a_1", True, id="POSIX class"),
        pytest.param(r"^\Q.+\E$", ".+", True, id="quoted"),
        pytest.param(r"^\\C$", r"\C", True, id="escaped backslash before C"),
        pytest.param("^(?P<n>a)(?<m>b)$", "ab", True, id="named groups"),
        pytest.param("^.$", "\U0001f600", True, id="dot is a code point"),
        pytest.param(r"^[\pL\pN_.-]{0,1000}$", "a", True, id="larger than RE2's default memory"),
    ],
)
def test_matches(pattern: str, text: str, is_match: bool) -> None:
    """A pattern matches where Go's does."""
    assert re2_patterns.matches(pattern, text) is is_match


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|a)*b", "a*a*a*a*a*b", "(.*,){20}x", "^([a-z0-9]+-?)+$", "[a-z]+$"])
def test_no_backtracking(pattern: str) -> None:
    """A text on which backtracking would not end is matched."""
    assert not re2_patterns.matches(pattern, "a" * 100_000 + "!")


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("x[a", "missing closing ]: `[a`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a++", "invalid nested repetition operator: `++`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("[c-a]", "invalid character class range: `c-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"a\Z", r"invalid escape sequence: `\Z`"),
        (r"a\C", r"invalid escape sequence: `\C`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?x)", "invalid or unsupported Perl syntax: `(?x`"),
        ("b(?<=a)", "invalid named capture: `(?<=a)`"),
        ("b(?<!a>c)", "invalid named capture: `(?<!a>`"),
        ("(?P<a b>a)", "invalid named capture: `(?P<a b>`"),
        ("(?P=n)", "invalid or unsupported Perl syntax: `(?P`"),
    ],
)
def test_invalid_patterns(pattern: str, error: str) -> None:
    """An invalid pattern has the error of Go's package regexp/syntax."""
    assert re2_patterns.find_error(pattern) == f"error parsing regexp: {error}"


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        pytest.param("a+", "aabab", ["aa", "a"], id="without overlap"),
        pytest.param("a*", "baac", ["", "aa", ""], id="no empty match directly after a match"),
        pytest.param("", "éα", ["", "", ""], id="before, between and after characters"),
        pytest.param("^a", "aa", ["a"], id="the start of the text alone"),
        pytest.param("$", "ab", [""], id="one end"),
        pytest.param(r"\pL", "1é2α", ["é", "α"], id="characters of several bytes"),
        pytest.param("a|ab", "ab", ["a"], id="the first alternative"),
    ],
)
def test_finds_all(pattern: str, text: str, found: list[str]) -> None:
    """Matches are those of Go's FindAllString."""
    assert list(re2_patterns.compile_cached(pattern).find_all(text)) == found
