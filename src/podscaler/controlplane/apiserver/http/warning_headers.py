"""Warnings as header values, short enough for every client to read them.

Called by `responses`. Once they are longer together than a client should have to read, each is cut, and the last
are not told.

Source: the API server's warning filter and apimachinery's NewWarningHeader (RFC 9111's `warning-value`).
"""

import unicodedata
from collections.abc import Iterable, Iterator

TOTAL_MAX_CHARACTERS = 4 * 1024
"""Of all texts together. Beyond it each is cut to `CUT_CHARACTERS`, and what comes after this length is dropped."""
CUT_CHARACTERS = 256


def values(warnings: Iterable[str]) -> list[str]:
    """The values of the headers: one for each different text, without those that no header can hold."""
    texts = [text for text in dict.fromkeys(warnings) if text]
    if sum(map(len, texts)) > TOTAL_MAX_CHARACTERS:
        texts = list(_cut(texts))
    return [f"299 - {_quoted(text)}" for text in texts if _is_sendable(text)]


def _cut(texts: Iterable[str]) -> Iterator[str]:
    length = 0
    for text in texts:
        if length >= TOTAL_MAX_CHARACTERS:
            return
        yield text[:CUT_CHARACTERS]
        length += len(text[:CUT_CHARACTERS])


def _is_sendable(text: str) -> bool:
    return not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
