"""Definitions of custom kinds that are nearly right, and objects of those that were taken."""

import copy
import random

import fuzz_bodies as bodies
import fuzz_budget as budget
import fuzz_manifests as manifests
import fuzz_objects as objects
from fuzz_client import Request
from fuzz_server import Target
from fuzz_verdict import check
from hypothesis import given

API_VERSION = "fuzz.example.com/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JSON = (("Content-Type", bodies.JSON),)
TABLE = (("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),)


def _definition(rng: random.Random, plural: str) -> objects.Object:
    manifest = copy.deepcopy(manifests.OPENING[0][1])
    manifest["metadata"]["name"] = f"{plural}.fuzz.example.com"
    manifest["spec"]["names"] = {"plural": plural, "kind": plural.upper()}
    if rng.random() < 0.6:
        manifest = objects.grown(rng, manifest, "apiextensions/v1.CustomResourceDefinition", rng.choice((1, 3, 9)))
    if rng.random() < 0.7:
        manifest["spec"]["versions"] = objects.mutated(rng, manifest["spec"]["versions"])
    return manifest


def test_definitions(target: Target) -> None:
    """Each is taken or refused, and whatever is done with what was taken is answered."""

    @budget.of(budget.EXAMPLES * 10)
    @given(budget.SEEDS)
    def ask(seed: int) -> None:
        rng = random.Random(f"definition {seed}")
        plural = f"w{rng.randrange(6)}s"
        removed = Request("DELETE", f"{DEFINITIONS}/{plural}.fuzz.example.com")
        check(target.client.send(removed), removed, target.alarm)
        asked = Request("POST", DEFINITIONS, JSON, bodies.json_of(_definition(rng, plural)))
        answer = target.client.send(asked)
        check(answer, asked, target.alarm)
        for follow in _follow_ups(rng, plural, answer.status == 201):
            check(target.client.send(follow), follow, target.alarm)

    ask()


def _follow_ups(rng: random.Random, plural: str, was_taken: bool) -> list[Request]:
    """What is done with a kind that there is now: created, applied, scaled, listed, explained."""
    if not was_taken:
        return []
    widget = manifests.valid(API_VERSION, "Widget")
    path = f"/apis/{API_VERSION}/namespaces/default/{plural}"
    patch_type, patch = bodies.patch(rng, widget)
    obj = objects.mutated(rng, {**widget, "kind": plural.upper()})
    return [
        Request("POST", path, JSON, bodies.json_of({**widget, "kind": plural.upper()})),
        Request("POST", path, JSON, bodies.json_of(obj)),
        Request("PUT", f"{path}/fuzz", JSON, bodies.json_of(obj)),
        Request("PATCH", f"{path}/fuzz?fieldManager=a", (("Content-Type", patch_type),), patch),
        Request("GET", path, TABLE),
        Request("GET", f"{path}?fieldSelector=spec.mode%3Da"),
        Request("GET", f"{path}/fuzz/scale"),
        Request("PUT", f"{path}/fuzz/scale", JSON, bodies.json_of(manifests.valid("autoscaling/v1", "Scale"))),
        Request("GET", "/openapi/v3/apis/fuzz.example.com/v1"),
    ]
