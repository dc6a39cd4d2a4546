"""Rules of decoding that the recorded vectors do not show."""

import json
import time

import pytest

from podscaler.api.schema import decoding
from podscaler.api.schema.decoding import Decoded, DecodeError, TypeMeta

HPA = "autoscaling/v2.HorizontalPodAutoscaler"


def test_a_clean_object_comes_out_in_the_order_of_the_schema():
    """Known fields only, in the order of Go's structs, quantities and times as the server prints them, no nulls."""
    body = b"""{"spec":{"maxReplicas":3,"behavior":null,"foo":1,"metrics":[{"resource":{"name":"memory","target":
        {"averageValue":0.50,"type":"AverageValue"}},"type":"Resource"}],"scaleTargetRef":{"name":"web","kind":"Deployment"}},
        "metadata":{"creationTimestamp":"2024-01-01T02:00:00+02:00","name":"web"},
        "apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler"}"""
    decoded = decoding.decode_json(body, HPA)
    assert json.dumps(decoded.obj) == json.dumps(
        {
            "kind": "HorizontalPodAutoscaler",
            "apiVersion": "autoscaling/v2",
            "metadata": {"name": "web", "creationTimestamp": "2024-01-01T00:00:00Z"},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                "maxReplicas": 3,
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "500m"}},
                    }
                ],
            },
        }
    )
    assert decoded.problems == ('unknown field "spec.foo"',)


def test_a_zero_that_means_nothing_is_dropped_and_one_that_means_something_kept():
    """`minReplicas: 0` is not absence, `paused: false` is; an empty list stays, since defaulting tells it from none."""
    deployment = {"spec": {"replicas": 0, "paused": False, "template": {"spec": {"tolerations": [], "nodeName": ""}}}}
    decoded = decoding.decode_value(deployment, "apps/v1.Deployment")
    assert decoded == Decoded({"spec": {"replicas": 0, "template": {"spec": {"tolerations": []}}}})


def test_the_given_value_is_not_changed():
    """A patched object can be decoded and thrown away."""
    value = {"spec": {"x": 1, "maxReplicas": 1, "metrics": [{"resource": {"target": {"averageValue": "0.5"}}}]}}
    before = json.dumps(value)
    decoding.decode_value(value, HPA)
    assert json.dumps(value) == before


def test_null_is_an_empty_object():
    """Upstream takes the body `null` for an object without fields."""
    assert decoding.decode_json(b"null", HPA) == Decoded({})


def test_an_unknown_message_is_the_caller_s_mistake():
    """A name that the schema does not have is no fault of the body."""
    with pytest.raises(KeyError):
        decoding.decode_value({}, "apps/v1.Nothing")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, TypeMeta("", "")),
        ({}, TypeMeta("", "")),
        ({"kind": None, "apiVersion": "v1"}, TypeMeta("v1", "")),
        ({"kind": "Pod", "apiVersion": "v1"}, TypeMeta("v1", "Pod")),
    ],
    ids=str,
)
def test_a_body_says_what_it_is(value, found):
    """Absent and null are both empty; the server fills in what the path says."""
    assert decoding.read_type_meta(value) == found


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([], "json: cannot unmarshal array into Go value of type struct { APIVersion string"),
        (12, "json: cannot unmarshal number into Go value of type struct { APIVersion string"),
        ("x", "json: cannot unmarshal string into Go value of type struct { APIVersion string"),
        (True, "json: cannot unmarshal bool into Go value of type struct { APIVersion string"),
        ({"kind": 1}, "json: cannot unmarshal number into Go struct field .kind of type string"),
        ({"apiVersion": []}, "json: cannot unmarshal array into Go struct field .apiVersion of type string"),
        ({"apiVersion": {}}, "json: cannot unmarshal object into Go struct field .apiVersion of type string"),
    ],
    ids=str,
)
def test_a_body_that_cannot_say_what_it_is_is_refused(value, text):
    """The error is upstream's, up to the Go type that it names."""
    with pytest.raises(DecodeError) as refused:
        decoding.read_type_meta(value)
    assert str(refused.value).startswith(f"couldn't get version/kind; json parse error: {text}")


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"", "<empty>"),
        (b"{", "{"),
        (b"[]", "5b5d"),
        (b'{"apiVersion": "autoscaling/v2", "kind": 1}', '{"apiVersion": "autoscaling/v2 ...'),
        (b"nonsense", "6e6f6e73656e7365"),
        (b"x" * 31, "78" * 30 + " ..."),
    ],
    ids=repr,
)
def test_a_refused_body_is_shown_by_its_beginning(body, shown):
    """Objects are shown as text, everything else in hexadecimal, 30 bytes at most."""
    assert decoding.summary(body) == shown


def test_repeated_yaml_keys_come_before_the_other_problems():
    """The YAML decoder's own text stands first, in one piece, as upstream has it."""
    decoded = decoding.decode_yaml(b"spec:\n  maxReplicas: 3\n  maxReplicas: 4\n  foo: 1\n", HPA)
    assert decoded == Decoded(
        {"spec": {"maxReplicas": 4}},
        ('yaml: unmarshal errors:\n  line 3: key "maxReplicas" already set in map', 'unknown field "spec.foo"'),
    )


def test_a_pod_decodes_in_well_under_a_millisecond():
    """Every write pays for decoding; the bound is loose, for slow machines."""
    container = {"name": "c", "image": "i", "env": [{"name": f"A{n}", "value": "b"} for n in range(40)]}
    body = json.dumps({"metadata": {"name": "a"}, "spec": {"containers": [container] * 2}}).encode()
    decoding.decode_json(body, "core/v1.Pod")
    spans_s = []
    for _ in range(5):
        started_s = time.thread_time()
        decoding.decode_json(body, "core/v1.Pod")
        spans_s.append(time.thread_time() - started_s)
    assert min(spans_s) < 0.005
