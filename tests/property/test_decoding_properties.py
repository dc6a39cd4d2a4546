"""What always holds of decoding, whatever a client sends."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podscaler.api.protobuf import protobuf
from podscaler.api.schema import canonical, decoding, schema
from podscaler.api.schema.decoding import DecodeError
from podscaler.api.schema.schema import Field
from podscaler.api.text import json_text, yaml_text

MESSAGES = ["apps/v1.Deployment", "autoscaling/v2.HorizontalPodAutoscaler", "core/v1.Service", "core/v1.Secret"]
MAX_DEPTH = 5

TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp", "Cn")), max_size=5)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "bool": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "double": st.integers(-1000, 1000),
    "bytes": st.sampled_from(["", "YQ==", "AAEC"]),
    schema.QUANTITY: st.sampled_from(["0", "1", "100m", "1Gi", "1e3", "-5", "2500m"]),
    schema.TIME: st.sampled_from(["2024-01-01T00:00:00Z", "1969-07-20T20:17:40Z"]),
    schema.MICRO_TIME: st.just("2024-01-01T00:00:00.000001Z"),
    schema.DURATION: st.sampled_from(["0s", "30s", "1m30s"]),
    schema.INT_OR_STRING: st.one_of(st.integers(-5, 100), st.sampled_from(["25%", "http"])),
}
JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def objects(draw, message, depth=0):
    """A valid object of a message, with some of its fields."""
    fields = [field for field in schema.get_message(message).json_fields() if depth < MAX_DEPTH or field.is_scalar]
    chosen = draw(st.lists(st.sampled_from(fields), max_size=4, unique_by=lambda field: field.name)) if fields else []
    return {field.name: draw(values(field, depth)) for field in chosen}


def values(field: Field, depth: int) -> st.SearchStrategy[Any]:
    """A valid value of a field."""
    if field.type in schema.FREE_FORM:
        one: st.SearchStrategy[Any] = st.dictionaries(TEXTS, st.integers(0, 9), max_size=2)
    else:
        one = VALUES[field.type] if field.type in VALUES else objects(field.type, depth + 1)
    if field.repeated:
        return st.lists(one, max_size=2)
    return st.dictionaries(TEXTS, one, max_size=2) if field.map else one


@pytest.mark.parametrize("message", MESSAGES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_valid_objects_decode_without_problems_and_to_themselves(message, data):
    """A decoded object decodes to itself, in JSON and in YAML."""
    obj = data.draw(objects(message))
    decoded = decoding.decode_json(json.dumps(obj).encode(), message)
    assert decoded.problems == ()
    assert decoding.decode_json(json_text.encode(decoded.obj), message) == decoded
    assert decoding.decode_yaml(json_text.encode(decoded.obj), message) == decoded


@pytest.mark.parametrize("message", MESSAGES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_protobuf_loses_nothing_that_is_stored(message, data):
    """The way through protobuf leaves the stored form as it is."""
    stored = canonical.canonical(decoding.decode_value(data.draw(objects(message)), message).obj, message)
    raw = protobuf.encode_raw(stored, message)
    again = decoding.decode_value(protobuf.decode_raw(raw, message), message).obj
    assert canonical.canonical(again, message) == stored


@pytest.mark.parametrize("message", MESSAGES)
@settings(max_examples=60, deadline=None)
@given(junk=JUNK)
def test_junk_is_decoded_or_refused(message, junk):
    """No value makes the decoder fail in another way than a DecodeError."""
    for value in (junk, {"metadata": junk, "spec": junk}):
        with suppress(DecodeError):
            decoding.decode_json(json.dumps(value).encode(), message)


@settings(max_examples=200, deadline=None)
@given(body=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body):
    """No body makes a parser fail in another way than a DecodeError."""
    for parse in (json_text.parse, yaml_text.parse, protobuf.decode):
        with suppress(DecodeError):
            parse(body)


@settings(max_examples=100, deadline=None)
@given(raw=st.binary(max_size=40), message=st.sampled_from(MESSAGES))
def test_any_message_bytes_are_read_or_refused(raw, message):
    """No protobuf message makes the decoder fail in another way than a DecodeError."""
    with suppress(DecodeError):
        decoding.decode_value(protobuf.decode_raw(raw, message), message)


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet='{}[]",:0123456789.eE+-truefalsn \\u"', max_size=20))
def test_json_is_refused_exactly_where_it_is_no_json(text):
    """The parser accepts what the standard library accepts, except for its extra constants."""
    try:
        expected = json.loads(text, parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        with pytest.raises(DecodeError):
            json_text.parse(text.encode())
    else:
        assert json_text.parse(text.encode()) == expected
