"""Bodies and what Go's decoder makes of them (decoding.jsonl).

Recorded with sigs.k8s.io/json and sigs.k8s.io/yaml on the types of k8s.io/api v0.37.0. One JSON object a line:
`message` (empty: plain YAML), `body` or `yaml`, then `error`, or `problems` and `stored` (the object after a round trip
through protobuf; for plain YAML `value`), and for some the wire form `protobuf`.
"""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from podscaler.api.protobuf import protobuf
from podscaler.api.schema import canonical, decoding
from podscaler.api.schema.decoding import DecodeError
from podscaler.api.text import yaml_text

VECTORS = [json.loads(line) for line in (Path(__file__).parent / "decoding.jsonl").read_text().splitlines()]


def without_type_meta(obj: dict[str, Any]) -> dict[str, Any]:
    """The wire form has no kind and apiVersion inside objects, so the recorded ones lack them."""
    obj = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    templates = (obj.get("spec") or {}).get("volumeClaimTemplates")
    if templates:
        obj["spec"]["volumeClaimTemplates"] = [without_type_meta(template) for template in templates]
    return obj


def outcome(vector: dict[str, Any]) -> dict[str, Any]:
    """What our decoder makes of a vector, in the vector's form."""
    message = vector["message"]
    try:
        if not message:
            return {"value": yaml_text.parse(vector["yaml"].encode()).value}
        if "yaml" in vector:
            decoded = decoding.decode_yaml(vector["yaml"].encode(), message)
        else:
            decoded = decoding.decode_json(vector["body"].encode(), message)
    except DecodeError as error:
        return {"error": str(error)}
    found: dict[str, Any] = {"stored": without_type_meta(canonical.canonical(decoded.obj, message))}
    return found | ({"problems": list(decoded.problems)} if decoded.problems else {})


def wanted(vector: dict[str, Any]) -> dict[str, Any]:
    """What upstream makes of it. Plain YAML is compared by value; its repeated keys are another test's."""
    names = ("error", "stored", "problems") if vector["message"] else ("error", "value")
    return {name: vector[name] for name in names if name in vector}


@pytest.mark.parametrize("vector", VECTORS, ids=[f"line-{number}" for number in range(1, len(VECTORS) + 1)])
def test_decoder_agrees_with_go(vector):
    """Every body gives upstream's error, or its problems and its stored form."""
    assert outcome(vector) == wanted(vector)


@pytest.mark.parametrize(
    "vector", [vector for vector in VECTORS if not vector["message"] and "problems" in vector], ids=lambda v: v["yaml"]
)
def test_repeated_yaml_keys_are_reported_as_go_does(vector):
    """The strict YAML decoder's text names each repeated key with its line."""
    document = decoding.yaml_text.parse(vector["yaml"].encode())
    assert [document.duplicates_text()] == vector["problems"]


@pytest.mark.parametrize("vector", [vector for vector in VECTORS if "protobuf" in vector], ids=lambda v: v["body"][:60])
def test_wire_form_gives_the_same_object(vector):
    """What gogo-protobuf wrote is read as the object that upstream reads from it, and survives our own encoder."""
    message = vector["message"]
    obj = decoding.decode_value(protobuf.decode_raw(base64.b64decode(vector["protobuf"]), message), message).obj
    again = decoding.decode_value(protobuf.decode_raw(protobuf.encode_raw(obj, message), message), message).obj
    assert (without_type_meta(canonical.canonical(obj, message)), again) == (vector["stored"], obj)
