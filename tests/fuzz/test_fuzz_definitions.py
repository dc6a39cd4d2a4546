"""Definitions of custom kinds that are nearly right, and objects of those that were taken."""

import copy
import random
import re

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
RULES = (
    "self.replicas >= 1 && self.replicas <= 5",
    "!has(self.mode) || self.mode in ['a', 'b'] || self.mode.matches('^(a+)+$')",
    "self.replicas >= oldSelf.replicas",
    "self.?mode.orValue('').split('').all(x, x.size() == 1)",
    "lists.range(1000).all(x, lists.range(1000).exists(y, x * y > 7))",
    "quantity(self.mode).isInteger() || isURL(self.mode) || ip(self.mode).family() == 4",
    "self.at > timestamp('2024-01-01T00:00:00Z') ? 1 / self.replicas > 0 : duration(self.mode) > duration('1m')",
)
TABLE = (("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),)


def _definition(rng: random.Random, plural: str) -> objects.Object:
    manifest = copy.deepcopy(manifests.OPENING[0][1])
    manifest["metadata"]["name"] = f"{plural}.fuzz.example.com"
    manifest["spec"]["names"] = {"plural": plural, "kind": plural.upper()}
    if rng.random() < 0.5:
        spec = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["x-kubernetes-validations"] = [_rule(rng) for _ in range(rng.randrange(1, 4))]
    if rng.random() < 0.6:
        manifest = objects.grown(rng, manifest, "apiextensions/v1.CustomResourceDefinition", rng.choice((1, 3, 9)))
    if rng.random() < 0.7:
        manifest["spec"]["versions"] = objects.mutated(rng, manifest["spec"]["versions"])
    return manifest


def _rule(rng: random.Random) -> objects.Object:
    """A rule that is right, or has words left out, doubled or taken from another."""
    words = re.findall(r"\w+|'[^']*'|\s+|[^\w\s]", rng.choice(RULES))
    for _ in range(rng.choice((0, 0, 1, 3))):
        at = rng.randrange(len(words))
        others = re.findall(r"\w+|'[^']*'|[^\w\s]", rng.choice(RULES))
        words[at : at + rng.randrange(2)] = [rng.choice(others)] * rng.randrange(3)
    rule = {"rule": "".join(words)}
    if rng.random() < 0.3:
        rule["messageExpression"] = rng.choice(("'replicas ' + string(self.replicas)", "self.mode", "''", "1"))
    return rule


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
