"""Autoscalers that the API server refuses: the fix of each fault, and what other rules find beside it."""

import pytest
from lint_manifests import Object, behavior, container, cpu, deployment, found, hpa, resource, short

HPA = "HorizontalPodAutoscaler shop/web"

FIXES: dict[str, tuple[Object, str]] = {
    "a field that is nearly known": (hpa(minReplica=2), "write minReplicas in place of minReplica"),
    "a field of a metric": (
        hpa(metrics=[cpu(type="AverageValue", averageValue="1", averageUtilisation=1)]),
        "write averageUtilization in place of averageUtilisation",
    ),
    "a field like no other": (hpa(zzz=2), "remove spec.zzz"),
    "too small": (
        behavior("scaleUp", policies=[{"type": "Pods", "value": 0, "periodSeconds": 60}]),
        "set spec.behavior.scaleUp.policies[0].value to more than zero",
    ),
    "below zero": (hpa(minReplicas=-1), "set spec.minReplicas to 0 or more"),
    "too large": (
        behavior("scaleUp", stabilizationWindowSeconds=7200),
        "set spec.behavior.scaleUp.stabilizationWindowSeconds to 3600 or less",
    ),
    "a value that is none of those allowed": (
        behavior("scaleUp", selectPolicy="Most"),
        'set spec.behavior.scaleUp.selectPolicy to one of "Disabled", "Max", "Min"',
    ),
    "a field that is missing": (
        hpa(scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment"}),
        "set spec.scaleTargetRef.name",
    ),
    "a limit that is another field": (hpa(minReplicas=20), "set spec.maxReplicas to `minReplicas` or more"),
    "a value of the wrong form": (
        hpa(scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "a/b"}),
        "change spec.scaleTargetRef.name; "
        "`kubectl explain horizontalpodautoscaler.spec.scaleTargetRef.name` describes it",
    ),
    "a value of another type": (
        hpa(maxReplicas="many"),
        "see `kubectl explain horizontalpodautoscaler` for the fields and their types",
    ),
}


@pytest.mark.parametrize(("autoscaler", "fix"), FIXES.values(), ids=FIXES)
def test_the_fix_names_the_value_that_is_allowed(autoscaler: Object, fix: str) -> None:
    """Each fault has a fix of its own, taken from the words of the API server and the schema."""
    assert [each.fix for each in found(autoscaler) if each.rule.id == "PSL000"] == [fix]


def test_other_findings_of_a_refused_autoscaler_are_reported() -> None:
    """One refused field does not hide what is wrong elsewhere."""
    assert short(hpa(minReplica=2, metrics=[resource("cpus")]), deployment(containers=[container("main")])) == [
        ("PSL000", HPA, ""),
        ("PSL025", HPA, "spec.metrics[0].resource.name"),
    ]


def test_what_follows_from_a_refused_value_is_not_reported() -> None:
    """A field that is refused is reported once, not again by the rules that look at it."""
    refused = behavior("scaleUp", stabilizationWindowSeconds=7200)
    assert short(refused) == [("PSL000", HPA, "spec.behavior.scaleUp.stabilizationWindowSeconds")]


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("cpus", "write cpu"),
        ("CPU", "write cpu"),
        ("mem", "write memory"),
        ("qps", "use a metric of type Pods, Object or External for anything else"),
    ],
)
def test_the_resource_that_was_probably_meant(name: str, fix: str) -> None:
    """A name close to a measured resource is corrected; any other one needs another type of metric."""
    assert [each.fix for each in found(hpa(metrics=[resource(name)])) if each.rule.id == "PSL025"] == [fix]


def test_refused_parts_are_left_out() -> None:
    """A policy without a type and a metric without a name are reported, and the rest is looked at all the same."""
    policies = [{"value": 1, "periodSeconds": 15}]
    refused = hpa(behavior={"scaleUp": {"policies": policies}}, metrics=[{"type": "Resource"}, resource("cpus")])
    assert [each.rule.id for each in found(refused)] == ["PSL000", "PSL000", "PSL025"]
