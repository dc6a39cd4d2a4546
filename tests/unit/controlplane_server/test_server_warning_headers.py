"""Warnings as headers: what is told, and how much of it."""

from podscaler.controlplane.apiserver.http import responses


def test_each_is_told_once_and_quoted() -> None:
    """Quotes and backslashes are escaped; what no header can hold is not told at all."""
    told = responses.warning_values(['a "b" \\', "é\u2028", "a\nb", "", "é\u2028"])
    assert told == ['299 - "a \\"b\\" \\\\"', '299 - "é\u2028"']


def test_all_that_fit_are_whole() -> None:
    """Texts of 4,096 characters together are told as they are."""
    texts = ["a" * 4000, "b" * 96]
    assert responses.warning_values(texts) == [f'299 - "{text}"' for text in texts]


def test_too_many_are_cut() -> None:
    """One character more, and each is cut to 256."""
    assert responses.warning_values(["a" * 4000, "b" * 97]) == [f'299 - "{"a" * 256}"', f'299 - "{"b" * 97}"']


def test_those_that_come_too_late_are_not_told() -> None:
    """Of texts that are cut, as many are told as reach 4,096 characters."""
    assert len(responses.warning_values([f"{number} {'a' * 300}" for number in range(40)])) == 16
