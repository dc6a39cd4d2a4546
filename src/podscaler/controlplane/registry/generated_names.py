"""Generates names from `metadata.generateName`.

Source: the API conventions on generateName; upstream's alphabet has no vowels (no accidental words) and no characters
that are easily confused.
"""

from random import Random

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
NAME_MAX_LENGTH = 63
ATTEMPTS = 8
"""How many names are tried before a create fails, as upstream does since 1.30."""


def generated_name(prefix: str, random: Random) -> str:
    """`prefix`, cut so that the name has at most 63 characters, and five random characters."""
    return prefix[: NAME_MAX_LENGTH - SUFFIX_LENGTH] + "".join(random.choices(ALPHABET, k=SUFFIX_LENGTH))
