"""Priority classes and runtime classes of new pods, in the words of the real server."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podscaler.api.kinds import catalog
from podscaler.base.errors import StatusError
from podscaler.controlplane.admission import pod_classes
from podscaler.controlplane.registry.objects import Objects
from podscaler.testing import VirtualClock
from podscaler.testing.registry import open_registry

Object = dict[str, Any]
PRIORITIES, RUNTIMES = "priorityclasses.scheduling.k8s.io", "runtimeclasses.node.k8s.io"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


@pytest.fixture
async def objects(tmp_path: Path) -> AsyncIterator[Objects]:
    """All kinds, the classes of the system, and a runtime class `vm`."""
    async with open_registry(tmp_path, catalog.RESOURCES, VirtualClock()) as opened:
        await pod_classes.make_system_classes(opened.registry)
        pod_classes.register(opened.objects)
        tolerations = [{"key": "vm", "operator": "Exists"}, {"key": NOT_READY, "operator": "Exists"}]
        scheduling = {"nodeSelector": {"kind": "vm"}, "tolerations": tolerations}
        vm = {"handler": "vm", "overhead": {"podFixed": {"cpu": "1"}}, "scheduling": scheduling}
        await opened.objects.create(RUNTIMES, {"metadata": {"name": "vm"}, **vm})
        yield opened.objects


def pod(name: str = "a", **spec: Any) -> Object:
    """A pod as a client's body becomes it."""
    made = {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    made["spec"] |= spec
    catalog.get("pods").versions[0].default(made)
    return made


def priority_class(name: str, **content: Any) -> Object:
    """A priority class of value 7."""
    return {"metadata": {"name": name}, "value": 7, "preemptionPolicy": "Never", **content}


async def created(objects: Objects, obj: Object) -> Object:
    """The spec of a pod as it is stored."""
    spec: Object = (await objects.create("pods", obj)).decode()["spec"]
    return spec


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({"priorityClassName": "none"}, "no PriorityClass with name none was found", id="no class"),
        pytest.param(
            {"priorityClassName": "system-node-critical", "priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; priority admission controller "
            "computed 2000001000 from the given PriorityClass name",
            id="another priority",
        ),
        pytest.param(
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission "
            "controller computed PreemptLowerPriority from the given PriorityClass name",
            id="another policy",
        ),
        pytest.param({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found', id="no runtime"),
        pytest.param(
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            id="overhead of nothing",
        ),
        pytest.param(
            {"runtimeClassName": "vm", "overhead": {"cpu": "2"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            id="another overhead",
        ),
        pytest.param(
            {"runtimeClassName": "vm", "nodeSelector": {"kind": "metal"}},
            "conflict: runtimeClass.scheduling.nodeSelector[kind] = vm; pod.spec.nodeSelector[kind] = metal",
            id="another node",
        ),
    ],
)
async def test_refusals(objects: Objects, spec: Object, why: str) -> None:
    """A class that is not there, or that says something else, forbids the pod."""
    with pytest.raises(StatusError) as refused:
        await objects.create("pods", pod(**spec))
    assert (refused.value.code, refused.value.message) == (403, f'pods "a" is forbidden: {why}')


async def test_a_refusal_comes_before_the_name_is_made(objects: Objects) -> None:
    """It names what the name would begin with."""
    unnamed = pod(priorityClassName="none")
    unnamed["metadata"] = {"generateName": "a-", "namespace": "default"}
    with pytest.raises(StatusError, match=r'^pods "a-" is forbidden'):
        await objects.create("pods", unnamed)


async def test_pods_have_what_their_runtime_class_says(objects: Objects) -> None:
    """Its overhead (however it is written), its nodes, and its tolerations where they say more than the pod's."""
    spec = await created(objects, pod(runtimeClassName="vm", overhead={"cpu": "1000m"}, nodeSelector={"zone": "a"}))
    assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "1"}, {"kind": "vm", "zone": "a"})
    found = [(each["key"], each.get("tolerationSeconds")) for each in spec["tolerations"]]
    assert found == [(UNREACHABLE, 300), ("vm", None), (NOT_READY, None)]


async def test_simulated_pods_need_no_class(objects: Objects) -> None:
    """The node plays them."""
    assert (await created(objects, pod(runtimeClassName="simulated")))["runtimeClassName"] == "simulated"


async def test_pods_have_the_default_priority_class(objects: Objects) -> None:
    """Those that name none; without a default, priority 0; of the system's classes theirs."""
    specs = [await created(objects, pod()), await created(objects, pod("b", priorityClassName="system-node-critical"))]
    await objects.create(PRIORITIES, priority_class("mine", globalDefault=True))
    specs.append(await created(objects, pod("c")))
    found = [(each.get("priorityClassName"), each["priority"], each["preemptionPolicy"]) for each in specs]
    lower = "PreemptLowerPriority"
    assert found == [(None, 0, lower), ("system-node-critical", 2_000_001_000, lower), ("mine", 7, "Never")]


async def test_there_is_one_default(objects: Objects) -> None:
    """Another class cannot become it; the one that is may be changed."""
    await objects.create(PRIORITIES, priority_class("mine", globalDefault=True))
    message = 'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass mine is already marked as default'
    with pytest.raises(StatusError, match=message):
        await objects.create(PRIORITIES, priority_class("other", globalDefault=True))
    changed = priority_class("mine", globalDefault=True, description="changed")
    await objects.update(PRIORITIES, "", "mine", lambda _: changed)
    await objects.delete(PRIORITIES, "", "mine")
    await objects.create(PRIORITIES, priority_class("other", globalDefault=True))


async def test_the_systems_classes_stay(objects: Objects) -> None:
    """They cannot be deleted."""
    message = '"system-node-critical" is forbidden: this is a system priority class and cannot be deleted'
    with pytest.raises(StatusError, match=message):
        await objects.delete(PRIORITIES, "", "system-node-critical")
