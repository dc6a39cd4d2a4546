"""Escaping as Go does it."""

import pytest

from podscaler.kube import quoting


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain", '"plain"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("tab\tend\n", '"tab\\tend\\n"'),
        ("\x00\x7f", '"\\x00\\x7f"'),
        ("grün", '"grün"'),
        ("\u200b", '"\\u200b"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
    ids=["plain", "quotes", "short escapes", "control", "letters", "invisible", "invisible, five digits"],
)
def test_quote(text: str, quoted: str) -> None:
    """`%q`: printable characters as they are, others by the shortest escape."""
    assert quoting.quote(text) == quoted


def test_query() -> None:
    """Alphabetical, space as plus, comma, equals sign and parentheses escaped; empty values are not sent."""
    parameters = [("metricLabelSelector", ""), ("labelSelector", "a=1,k in (x,y)"), ("continue", "b/c")]
    assert quoting.query(parameters) == "continue=b%2Fc&labelSelector=a%3D1%2Ck+in+%28x%2Cy%29"


def test_path() -> None:
    """A star is escaped, a colon is not, and empty segments are left out."""
    assert quoting.path("apis", "", "v1", "pods", "*", "a:b c") == "/apis/v1/pods/%2A/a:b%20c"
