"""Autoscalers of autoscaling/v2 with every kind of metric, behavior and condition, as strategies."""

from typing import Any

from hypothesis import strategies as st

from podscaler.api.kinds.autoscaling import hpa_defaults
from podscaler.api.schema import canonical

_QUANTITIES = st.sampled_from(["1", "500m", "2k", "100Mi", "1e3", "7"])
_NAMES = st.text("abc<>&\u2028é", min_size=1, max_size=4)
_SELECTORS = st.none() | st.fixed_dictionaries({"matchLabels": st.dictionaries(_NAMES, _NAMES, min_size=1, max_size=2)})
_REFERENCES = st.fixed_dictionaries({"kind": _NAMES, "name": _NAMES}, optional={"apiVersion": _NAMES})


def _given(**parts: Any) -> dict[str, Any]:
    return {name: part for name, part in parts.items() if part is not None}


def _metric(draw: st.DrawFn) -> dict[str, Any]:
    return _given(name=draw(_NAMES), selector=draw(_SELECTORS))


def _target(kind: str, **parts: Any) -> dict[str, Any]:
    return _given(type=kind, **parts)


@st.composite
def _metrics(draw: st.DrawFn) -> dict[str, Any]:
    """A metric as validation accepts it, with the target type that fits the fields set."""
    value = draw(_QUANTITIES)
    average = _target("AverageValue", averageValue=value)
    resource = draw(
        st.sampled_from([average, _target("Utilization", averageUtilization=draw(st.integers(1, 2**31 - 1)))])
    )
    one = draw(st.sampled_from([average, _target("Value", value=value)]))
    sources = {
        "Object": {"describedObject": draw(_REFERENCES), "target": one, "metric": _metric(draw)},
        "Pods": {"metric": _metric(draw), "target": average},
        "Resource": {"name": "memory", "target": resource},
        "ContainerResource": {"name": "cpu", "target": resource, "container": draw(_NAMES)},
        "External": {"metric": _metric(draw), "target": one},
    }
    kind = draw(st.sampled_from(sorted(sources)))
    return {"type": kind, kind[0].lower() + kind[1:]: sources[kind]}


_POLICIES = st.fixed_dictionaries(
    {"type": st.sampled_from(["Pods", "Percent"]), "value": st.integers(1, 9), "periodSeconds": st.integers(1, 1800)}
)
_RULES = st.fixed_dictionaries(
    {},
    optional={
        "stabilizationWindowSeconds": st.integers(0, 3600),
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
        "policies": st.lists(_POLICIES, min_size=1, max_size=2),
        "tolerance": _QUANTITIES,
    },
)
_CONDITIONS = st.fixed_dictionaries(
    {"type": _NAMES, "status": st.sampled_from(["True", "False"]), "lastTransitionTime": st.none()},
    optional={"reason": _NAMES, "message": _NAMES, "observedGeneration": st.integers(0, 9)},
)


@st.composite
def hpas(draw: st.DrawFn) -> dict[str, Any]:
    cpu = draw(st.none() | st.integers(1, 300))
    metrics = draw(st.lists(_metrics(), min_size=0 if cpu else 1, max_size=3))
    hpa = {
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v2",
        "metadata": {"name": "web", "annotations": {"mine": draw(_NAMES)}},
        "spec": _given(
            scaleTargetRef={"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
            maxReplicas=9,
            metrics=metrics + ([hpa_defaults.cpu_utilization_metric(cpu)] if cpu else []),
            behavior=draw(st.none() | st.fixed_dictionaries({}, optional={"scaleUp": _RULES, "scaleDown": _RULES})),
        ),
        "status": {"desiredReplicas": 3, "conditions": draw(st.lists(_CONDITIONS, max_size=2))},
    }
    hpa_defaults.set_v2_defaults(hpa)
    hpa_defaults.set_status_defaults(hpa)
    return canonical.canonical(hpa, "autoscaling/v2.HorizontalPodAutoscaler")
