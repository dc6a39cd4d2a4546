"""Go-quoted texts."""

import pytest

from podscaler.api.text.quoting import quoted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("web", '"web"'),
        ('a"b\\c', r'"a\"b\\c"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\x00\x7f\u00a0\U000e0001", r'"\x00\x7f\u00a0\U000e0001"'),
        ("é日😀", '"é日😀"'),
    ],
)
def test_quoted(text: str, shown: str) -> None:
    """Printable characters stay; everything else has Go's escape."""
    assert quoted(text) == shown
