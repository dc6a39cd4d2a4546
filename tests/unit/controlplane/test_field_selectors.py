"""Field selectors: syntax, escapes and upstream's sentences."""

import pytest

from podscaler.controlplane.storage import field_selectors
from podscaler.controlplane.storage.field_selectors import FieldSelectorError, Term


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", (), id="empty selects all"),
        pytest.param("a=b", (Term("a", "b"),), id="one equals sign"),
        pytest.param("a==b", (Term("a", "b"),), id="two equals signs"),
        pytest.param("a!=b", (Term("a", "b", negated=True),), id="not"),
        pytest.param("a=", (Term("a", ""),), id="empty value"),
        pytest.param("b=1,a=2", (Term("a", "2"), Term("b", "1")), id="several, sorted"),
        pytest.param("a=1,,", (Term("a", "1"),), id="empty parts are skipped"),
        pytest.param(r"a=x\,y\=z\\", (Term("a", r"x,y=z" + "\\"),), id="escapes"),
    ],
)
def test_texts_and_their_terms(text: str, expected: tuple[Term, ...]) -> None:
    """A text means these requirements."""
    assert field_selectors.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a=1,b", "invalid selector: 'a=1,b'; can't understand 'b'"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_texts_that_are_none(text: str, sentence: str) -> None:
    """A wrong text gives upstream's sentence."""
    with pytest.raises(FieldSelectorError) as refused:
        field_selectors.parse(text)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("selectable", "sentence"),
    [
        ((), '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        (("spec.y",), "field label not supported: spec.x"),
    ],
    ids=["kind without fields of its own", "kind with fields of its own"],
)
def test_unknown_fields(selectable: tuple[str, ...], sentence: str) -> None:
    """A field that cannot be selected is refused in upstream's words; those of metadata always can."""
    field_selectors.check_known(field_selectors.parse("metadata.name=a,metadata.namespace=b"), selectable)
    with pytest.raises(FieldSelectorError) as refused:
        field_selectors.check_known(field_selectors.parse("spec.x=1"), selectable)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("text", "expected"), [("a=1", True), ("a!=1", False), ("a=2", False), ("b=", True), ("b!=1", True)]
)
def test_terms_match_fields(text: str, expected: bool) -> None:
    """An absent field is the empty text."""
    assert all(term.matches({"a": "1"}) for term in field_selectors.parse(text)) is expected
