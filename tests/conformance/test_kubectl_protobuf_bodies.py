"""The protobuf bodies that kubectl sent in the golden transcripts, against the answers that it got."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from podscaler.api.protobuf import protobuf
from podscaler.api.schema import decoding, schema

TRANSCRIPTS = Path(__file__).parent / "golden" / "kubectl.jsonl"


def bodies() -> list[Any]:
    """One parameter for each protobuf body of the transcripts."""
    found = []
    for line in TRANSCRIPTS.read_text().splitlines():
        case = json.loads(line)
        for step in case["steps"]:
            for client, requests in step.get("requests", {}).items():
                found += [
                    pytest.param(
                        request["path"], base64.b64decode(request["bodyProtobufB64"]), id=f"{case['name']}-{client}"
                    )
                    for request in requests
                    if "bodyProtobufB64" in request
                ]
    return found


@pytest.mark.parametrize(("path", "body"), bodies())
def test_body_is_of_the_kind_of_its_path(path, body):
    """Every body of kubectl decodes without a problem to an object of the resource that it was posted to."""
    read = protobuf.decode(body)
    message = schema.find_kind(read.api_version, read.kind)
    assert message is not None
    decoded = decoding.decode_value(read.obj, message)
    assert decoded.problems == ()
    assert path.split("?")[0].rpartition("/")[2] in {f"{read.kind.lower()}s", f"{read.kind.lower()}es"}
    assert ("/api/" if "/" not in read.api_version else "/apis/") + read.api_version in path


def test_autoscale_body_holds_what_was_asked_for():
    """`kubectl autoscale --cpu=50% --memory=200Mi` of 1.37 arrives with both metrics."""
    case = next(
        json.loads(line) for line in TRANSCRIPTS.read_text().splitlines() if '"autoscale-memory-value@1.37"' in line
    )
    sent = next(r for step in case["steps"] for r in step["requests"]["1.37"] if "bodyProtobufB64" in r)
    read = protobuf.decode(base64.b64decode(sent["bodyProtobufB64"]))
    assert decoding.decode_value(read.obj, "autoscaling/v2.HorizontalPodAutoscaler").obj["spec"] == {
        "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
        "maxReplicas": 5,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            },
            {
                "type": "Resource",
                "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "200Mi"}},
            },
        ],
    }
