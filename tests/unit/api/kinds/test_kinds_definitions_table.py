"""How CustomResourceDefinitions and classes of priority show: columns, and words of refusals."""

from typing import Any

import pytest

from podscaler.api.kinds import catalog

_CRD = catalog.get("customresourcedefinitions.apiextensions.k8s.io")
_VERSIONS = [
    {"name": "v1beta1", "served": True, "storage": False},
    {"name": "v1", "served": True, "storage": True},
    {"name": "v2", "served": False, "storage": False},
]


@pytest.mark.parametrize(
    ("status", "established"),
    [
        pytest.param({}, False, id="new"),
        pytest.param({"conditions": [{"type": "Established", "status": "True"}]}, True, id="established"),
    ],
)
def test_definitions_show_what_they_serve(status: dict[str, Any], established: bool) -> None:
    """The versions served are listed, the preferred one first, and the stored one is marked."""
    names = {"plural": "gears", "kind": "Gear", "shortNames": ["g", "gr"]}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": _VERSIONS}
    crd = {"metadata": {"name": "x", "creationTimestamp": "T"}, "spec": spec, "status": status}
    row = ["x", "Cluster", "v1(storage),v1beta1", "T", "example.com", "Gear", "g,gr", established]
    assert _CRD.printer.row(crd, 0) == row


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        pytest.param(
            {"metadata": {"name": "system-x"}, "value": 5},
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. "
            "error: system-x is not a known system priority class",
            id="a name of the system",
        ),
        pytest.param(
            {"metadata": {"name": "x"}, "value": 5, "preemptionPolicy": "Maybe"},
            'preemptionPolicy: Unsupported value: "Maybe": supported values: "PreemptLowerPriority", "Never"',
            id="no policy",
        ),
    ],
)
def test_priority_classes(given: dict[str, Any], fault: str) -> None:
    """Refusals of priority classes have upstream's words."""
    resource = catalog.get("priorityclasses.scheduling.k8s.io")
    priority_class = {"preemptionPolicy": "Never", **given}
    assert [str(each) for each in resource.strategy.validate(priority_class, None)] == [fault]
