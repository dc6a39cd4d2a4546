"""Generates names from `metadata.generateName`.

`registry.object_writer` calls it, and `admission.account_admission` for the name of a volume: the prefix `web-` becomes
`web-x7k2p`.

Source: the API conventions on generateName; apimachinery's alphabet has no vowels (no accidental words) and no
characters that are easily confused.
"""

from random import Random

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
NAME_MAX_LENGTH = 63
ATTEMPTS = 8
"""How many names a create tries before it fails, as kube-apiserver 1.30 does."""


def generated_name(prefix: str, random: Random) -> str:
    """`prefix`, cut so that the name has at most NAME_MAX_LENGTH characters, and SUFFIX_LENGTH random characters."""
    return prefix[: NAME_MAX_LENGTH - SUFFIX_LENGTH] + "".join(random.choices(ALPHABET, k=SUFFIX_LENGTH))
