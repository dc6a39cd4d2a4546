"""Writes JSON-ready data as YAML, in the form that Go's sigs.k8s.io/yaml writes.

Called by the API server for clients that accept YAML, and by commands that write manifests. A further text that Go
quotes: `_QUOTED_BY_GO`.

Invariants: the output has the same meaning in YAML 1.1 and 1.2 (`"yes"` is quoted); texts without line breaks are on
one line; there are no aliases. Slow for large values: call it in a thread.

Source: the behaviour of sigs.k8s.io/yaml.
"""

import re
from collections.abc import Callable
from typing import Any

import yaml

_TEXT_TAG = "tag:yaml.org,2002:str"
_LINE_MAX_CHARACTERS = 2**30


class _Dumper(yaml.CSafeDumper):
    """Quotes texts that would be read as another type; writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Always true."""
        del data
        return True


_QUOTED_BY_GO = re.compile(r"[yYnN]|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?0[xob][0-9a-fA-F]+")
"""Texts that Go's library quotes although PyYAML would not: old booleans, and numbers of other spellings."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """A text in its YAML style: in quotes if it would be read as another type, as a block if it has lines."""
    style = None
    if "\n" in text:
        style = "|"
    elif _QUOTED_BY_GO.fullmatch(text) or _resolve_tag(dumper, text) != _TEXT_TAG:
        style = '"'
    return dumper.represent_scalar(_TEXT_TAG, text, style=style)


def _resolve_tag(dumper: _Dumper, text: str) -> str:
    """The tag of the unquoted text."""
    resolve: Callable[[type, str, tuple[bool, bool]], str] = dumper.resolve
    return resolve(yaml.ScalarNode, text, (True, False))


_Dumper.add_representer(str, _represent_text)


def write(value: Any, *, sort_keys: bool) -> bytes:
    """JSON-ready data as one YAML document without a marker.

    Args:
        value: dicts, lists and scalars of exactly these types.
        sort_keys: sort keys, as kube-apiserver does, in place of the order of the data.
    """
    dumped: bytes = yaml.dump(
        value, Dumper=_Dumper, sort_keys=sort_keys, allow_unicode=True, width=_LINE_MAX_CHARACTERS, encoding="utf-8"
    )
    return dumped
