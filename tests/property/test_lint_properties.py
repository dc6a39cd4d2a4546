"""Linting never crashes: on any value, on any objects of the kinds that it knows, on any autoscaler."""

from typing import Any

from hpa_objects import hpas
from hypothesis import given
from hypothesis import strategies as st

from podscaler.lint import linter
from podscaler.lint.model import reading
from podscaler.lint.model.lint_context import LintedCluster
from podscaler.lint.model.linted_item import DocumentOrigin
from podscaler.lint.rules import served_metrics

KINDS = [
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("autoscaling/v1", "HorizontalPodAutoscaler"),
    ("autoscaling/v2beta1", "HorizontalPodAutoscaler"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("v1", "ReplicationController"),
    ("v1", "ResourceQuota"),
    ("v1", "LimitRange"),
    ("v1", "List"),
    ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"),
    ("keda.sh/v1alpha1", "ScaledObject"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
]
KEYS = [
    *("spec", "metadata", "name", "namespace", "annotations", "labels", "selector", "matchLabels", "template"),
    *("containers", "initContainers", "resources", "requests", "limits", "cpu", "hard", "pods", "replicas", "items"),
    *("scaleTargetRef", "targetRef", "kind", "apiVersion", "minReplicas", "maxReplicas", "metrics", "behavior", "type"),
    *("scaleUp", "scaleDown", "policies", "tolerance", "group", "names", "versions", "subresources", "default"),
    *("resourcePolicy", "containerPolicies", "controlledResources", "ownerReferences", "managedFields", "fieldsV1"),
]
LEAVES = st.sampled_from([None, True, 0, 1, -1, 2**40, 1.5, "", "web", "1", "100m", "x=y", "apps/v1", "Deployment"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=25,
)
CLUSTER = LintedCluster(
    metrics={
        group: frozenset({"pods/a", "b"})
        for group in (served_metrics.RESOURCE, served_metrics.CUSTOM, served_metrics.EXTERNAL)
    }
)


@st.composite
def objects(draw: st.DrawFn) -> Any:
    """An object that says what it is, with anything in it."""
    api_version, kind = draw(st.sampled_from(KINDS))
    rest = draw(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4))
    return {**rest, "apiVersion": api_version, "kind": kind}


def judged(values: list[Any], *, is_live: bool) -> None:
    """Lint them, and write every line."""
    origin = DocumentOrigin() if is_live else DocumentOrigin("f.yaml", 1, b"spec: {}")
    items = [item for value in values for item in reading.items(value, origin)]
    for finding in linter.lint(items, CLUSTER if is_live else None):
        assert finding.message
        assert finding.fix


@given(VALUES)
def test_any_value(value: Any) -> None:
    """Whatever a file holds is judged."""
    judged([value], is_live=False)


@given(st.lists(objects(), max_size=4), st.booleans())
def test_any_objects(values: list[Any], is_live: bool) -> None:
    """Objects with wrong types everywhere are judged, from files and from clusters."""
    judged(values, is_live=is_live)


@given(st.lists(hpas(), max_size=3), st.booleans())
def test_any_autoscalers(values: list[Any], is_live: bool) -> None:
    """Autoscalers of all shapes are judged."""
    judged(values, is_live=is_live)
