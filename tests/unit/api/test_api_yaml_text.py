"""Rules of YAML bodies that protect the server; what values mean is in the recorded vectors."""

import pytest

from podscaler.api.schema.decoding import DecodeError
from podscaler.api.text import yaml_text
from podscaler.api.text.yaml_text import Document

BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 10)}]\n" for before, name in ("ab", "bc", "cd", "de", "ef")
)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("a: 1\nb: c: d", "yaml: line 2: mapping values are not allowed in this context"),
        ("a: *x", "yaml: unknown anchor 'x' referenced"),
        ("a: &a [*a]", "yaml: anchor 'a' value contains itself"),
        ("a: .inf", "json: unsupported value: +Inf"),
        ("? [a]\n: b", "yaml: line 1: this key cannot be the name of a field"),
        ("[" * 100_000, "yaml: exceeded max depth"),
        ("{a: " * 100_000, "yaml: exceeded max depth"),
        ("- " * 100_000, "yaml: exceeded max depth"),
        (BOMB, "yaml: document contains excessive aliasing"),
        ("a: !!int x", "yaml: cannot decode !!str `x` as a !!int"),
        ("a: !!binary '!'", "yaml: !!binary value contains invalid base64 data"),
        ("<<: 5", "yaml: map merge requires map or sequence of maps as the value"),
    ],
    ids=lambda text: text[:20],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(body, text):
    """Bad syntax, endless nesting and exploding anchors are errors of the body, never of the server."""
    with pytest.raises(DecodeError) as refused:
        yaml_text.parse(body.encode())
    assert str(refused.value) == text


@pytest.mark.parametrize("body", ["", "# nothing", "---\n"], ids=repr)
def test_an_empty_document_is_null(body):
    """A file of comments is no error of syntax."""
    assert yaml_text.parse(body.encode()) == Document(None)


def test_only_the_first_document_counts():
    """A body holds one object; kubectl splits files before it sends them."""
    assert yaml_text.parse(b"a: 1\n---\nb: 2\n").value == {"a": 1}


def test_all_repeated_keys_are_reported_in_one_text():
    """Each repeated key has its line; texts and numbers are different keys to YAML."""
    document = yaml_text.parse(b"a: 1\nb: {c: 1, c: 2}\na: 2\n'1': q\n1: z\n")
    assert document.value == {"a": 2, "b": {"c": 2}, "1": "z"}
    assert document.duplicates_text() == (
        'yaml: unmarshal errors:\n  line 2: key "c" already set in map\n  line 3: key "a" already set in map'
    )


def test_aliases_are_followed_while_they_are_few():
    """Anchors within reason are ordinary YAML."""
    assert yaml_text.parse(b"a: &x {b: [1]}\nc: *x\nd: {<<: *x, e: 2}\n").value == {
        "a": {"b": [1]},
        "c": {"b": [1]},
        "d": {"b": [1], "e": 2},
    }


def test_scalars_as_texts() -> None:
    """Where texts are asked for, scalars and keys stay as they were written."""
    body = b"{a: 0.10, yes: [no, ~, 010, '1'], 1: 100m, b: }"
    assert yaml_text.parse_texts(body).value == {"a": "0.10", "yes": ["no", "~", "010", "1"], "1": "100m", "b": ""}
