"""Rules of protobuf bodies; kubectl's own are among the conformance tests."""

import subprocess
import sys

import pytest

from podscaler.api.protobuf import protobuf
from podscaler.api.protobuf.protobuf import Body
from podscaler.api.schema.decoding import DecodeError

POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "web", "creationTimestamp": "2024-01-01T00:00:00Z", "labels": {"a": "b"}},
    "spec": {
        "volumes": [{"name": "v", "configMap": {"name": "c", "optional": False}}],
        "containers": [
            {"name": "c", "livenessProbe": {"httpGet": {"port": "http"}}, "resources": {"limits": {"cpu": "1500m"}}}
        ],
    },
}


def test_a_body_is_an_envelope_with_the_kind():
    """Four magic bytes, then the kind and the object in it; inlined parts stand in the parent again."""
    body = protobuf.encode(POD, "core/v1.Pod")
    read = protobuf.decode(body)
    assert (body[:4], read.api_version, read.kind) == (b"k8s\x00", "v1", "Pod")
    assert {"kind": "Pod", "apiVersion": "v1"} | read.obj == POD


def test_a_kind_that_is_not_known_is_named_without_its_object():
    """The server refuses it by name; what is in it is nobody's business."""
    body = protobuf.encode({"kind": "Widget", "apiVersion": "example.com/v1"}, "core/v1.Pod")
    assert protobuf.decode(body) == Body({}, "example.com/v1", "Widget")


def test_an_envelope_without_kind_is_what_the_path_expects():
    """As with JSON, a body need not say what it is."""
    body = protobuf.encode({"metadata": {"name": "web"}}, "core/v1.Pod")
    assert protobuf.decode(body, "core/v1.Pod") == Body({"metadata": {"name": "web"}}, "", "")
    assert protobuf.decode(body) == Body({}, "", "")


@pytest.mark.parametrize("body", [b"", b"nonsense", b"k8s", b"K8s\x00"], ids=repr)
def test_a_body_without_the_magic_bytes_is_refused(body):
    """The sentence is upstream's."""
    with pytest.raises(DecodeError, match=r"expected prefix \[107 56 115 0\]"):
        protobuf.decode(body)


WHOLE = protobuf.encode(POD, "core/v1.Pod")


@pytest.mark.parametrize(
    "body",
    [b"k8s\x00\xff\xff", WHOLE[:-1], WHOLE[:-30], b"k8s\x00" + b"\x0a\x0b\x0a\x02v1\x12\x03Pod\x12\x02\x0a\x7f"],
    ids=repr,
)
def test_broken_messages_are_refused(body):
    """Truncated or malformed bytes are an error of the body."""
    with pytest.raises(DecodeError, match="not a valid message"):
        protobuf.decode(body)


def test_text_that_is_not_utf8_is_replaced():
    """As in Go's JSON, bytes that are no text become U+FFFD."""
    body = protobuf.encode({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "ab__"}}, "core/v1.Pod")
    assert protobuf.decode(body.replace(b"ab__", b"ab\xff\xfe")).obj["metadata"] == {"name": "ab\ufffd\ufffd"}


@pytest.mark.parametrize(
    ("part", "decoded"),
    [
        pytest.param({"nodeSelector": {"ab__": "c", "d": "e"}}, {"ab\ufffd\ufffd": "c", "d": "e"}, id="of texts"),
        pytest.param({"overhead": {"ab__": "1", "d": "2"}}, {"ab\ufffd\ufffd": "1", "d": "2"}, id="of messages"),
    ],
)
def test_keys_that_are_not_utf8_are_replaced(part, decoded):
    """The keys of maps too, whatever their values are."""
    body = protobuf.encode({"kind": "Pod", "apiVersion": "v1", "spec": part}, "core/v1.Pod")
    [found] = protobuf.decode(body.replace(b"ab__", b"ab\xff\xfe")).obj["spec"].values()
    assert found == decoded


def test_of_a_repeated_key_the_last_entry_counts():
    """As everywhere where protobuf has maps."""
    body = protobuf.encode(
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"labels": {"a": "1", "b": "2"}}}, "core/v1.Pod"
    )
    assert protobuf.decode(body.replace(b"\x01b\x12\x012", b"\x01a\x12\x012")).obj["metadata"] == {"labels": {"a": "2"}}


def test_importing_costs_nothing():
    """google.protobuf is loaded with the first body, not at start-up."""
    code = "import sys, podscaler.api.protobuf.protobuf; sys.exit('google.protobuf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("seconds", [2**62, -(2**62), 253402300800])
def test_times_out_of_range_are_refused(seconds):
    """A time beyond year 9999 cannot be written, so it is not taken."""
    from podscaler.api.protobuf import protobuf_types

    proto = protobuf_types.for_message("meta/v1.ObjectMeta")()
    proto.f8.f1 = seconds
    with pytest.raises(DecodeError, match="a time is out of range"):
        protobuf.decode_raw(proto.SerializeToString(), "meta/v1.ObjectMeta")
