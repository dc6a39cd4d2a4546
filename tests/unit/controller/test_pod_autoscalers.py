"""PodAutoscalers beside HorizontalPodAutoscalers: the same decisions and statuses, and never two for a target."""

from typing import Any

import pytest

from podscaler.api.machinery import instants
from podscaler.controller.coexistence import standby
from podscaler.controller.history import history_record
from podscaler.controller.history.history_record import HistoryRecord
from podscaler.controller.informers import handover
from podscaler.controller.options import autoscaler_kinds
from podscaler.controller.options.autoscaler_kinds import HPA, POD_AUTOSCALER
from podscaler.core.model.history import History, Recommendation
from podscaler.testing.autoscaling import AutoscalerWorld, spec
from podscaler.testing.cluster import HPAS, POD_AUTOSCALERS

ONLY = (POD_AUTOSCALER,)
BOTH = (HPA, POD_AUTOSCALER)


class World(AutoscalerWorld):
    """A world with PodAutoscalers."""

    def __init__(self, *kinds: autoscaler_kinds.AutoscalerKind, **settings: Any) -> None:
        super().__init__(kinds=kinds, **settings)
        self.cluster.serve_pod_autoscalers()

    def add(self, name: str = "web", *, cpu: str = "1000m", replicas: int = 2, **annotations: str) -> None:
        """A PodAutoscaler of the deployment `web`, whose pods use so much."""
        self.cluster.put_deployment("web", replicas)
        for number in range(replicas):
            self.cluster.put_pod(f"web-{number}", "web", cpu)
        self.cluster.put_autoscaler(name, spec(), uid="pa", annotations=annotations, path=POD_AUTOSCALERS)

    def pod_autoscaler(self, name: str = "web") -> dict[str, Any]:
        """As it is now."""
        return self.cluster.collections[POD_AUTOSCALERS].objects["shop", name]

    def conditions(self, path: str, name: str = "web") -> dict[str, str]:
        """Reasons by type."""
        status = self.cluster.collections[path].objects["shop", name]["status"]
        return {each["type"]: each["reason"] for each in status.get("conditions") or ()}


async def test_it_is_looked_after() -> None:
    """The scale, the status and the event are those of a HorizontalPodAutoscaler, on the PodAutoscaler."""
    world = World(*ONLY)
    world.add()
    await world.start()
    await world.advance(1)
    await world.close()
    event = world.cluster.events[0]
    subject = {key: event["involvedObject"][key] for key in ("kind", "apiVersion", "name")}
    assert (world.replicas(), world.pod_autoscaler()["status"]["desiredReplicas"], subject, event["reason"]) == (
        4,
        4,
        {"kind": "PodAutoscaler", "apiVersion": "podscaler.dev/v1alpha1", "name": "web"},
        "SuccessfulRescale",
    )
    put = next(each for each in world.cluster.requests if each.path.endswith("/status"))
    assert put.path == "/apis/podscaler.dev/v1alpha1/namespaces/shop/podautoscalers/web/status"
    assert b'"kind":"PodAutoscaler","apiVersion":"podscaler.dev/v1alpha1"' in (put.body or b"")


async def test_quantities_as_numbers() -> None:
    """A custom resource may have whole numbers where a HorizontalPodAutoscaler has texts."""
    world = World(*ONLY)
    world.add(cpu="2")
    average = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": 1}}}
    world.cluster.put_autoscaler("web", spec(metrics=[average]), uid="pa", path=POD_AUTOSCALERS)
    await world.start()
    await world.advance(1)
    await world.close()
    assert world.replicas() == 4


async def test_a_spec_that_no_server_refused() -> None:
    """Bounds that contradict each other scale nothing, and the status says what is wrong."""
    world = World(*ONLY)
    world.add()
    world.cluster.put_autoscaler("web", spec(minimum=5, maximum=1), uid="pa", path=POD_AUTOSCALERS)
    await world.start()
    await world.advance(31)
    await world.close()
    condition = world.pod_autoscaler()["status"]["conditions"][0]
    assert (world.replicas(), condition["reason"], condition["message"]) == (
        2,
        "FailedGetScale",
        "the HPA controller was unable to get the target's current scale: the spec is invalid: spec.maxReplicas: "
        "Invalid value: 1: must be greater than or equal to `minReplicas`",
    )


async def test_the_same_name_in_both_kinds() -> None:
    """A HorizontalPodAutoscaler and a PodAutoscaler of one name and other targets do not disturb each other."""
    world = World(*BOTH)
    world.add()
    world.cluster.put_deployment("api", 1)
    world.cluster.put_pod("api-0", "api", "1000m")
    world.cluster.put_autoscaler("web", spec("api"))
    await world.start()
    await world.advance(1)
    world.cluster.delete(POD_AUTOSCALERS, "web")
    await world.advance(20)
    await world.close()
    assert (world.replicas(), world.replicas("api"), world.metric("num_horizontal_pod_autoscalers")) == (4, 2, 1)


async def test_two_of_ours_for_one_target() -> None:
    """Both refuse, as two HorizontalPodAutoscalers do, and the one that is left goes on."""
    world = World(*BOTH)
    world.add(cpu="500m")
    world.cluster.put_autoscaler("web", spec())
    await world.start()
    await world.advance(31)
    refused = [world.conditions(path)["ScalingActive"] for path in (HPAS, POD_AUTOSCALERS)]
    world.cluster.delete(HPAS, "web")
    await world.advance(16)
    await world.close()
    assert (refused, world.conditions(POD_AUTOSCALERS)["ScalingActive"]) == (
        ["AmbiguousSelector", "AmbiguousSelector"],
        "ValidMetricFound",
    )


async def test_the_target_of_somebody_else() -> None:
    """A PodAutoscaler whose target a HorizontalPodAutoscaler scales refuses, and goes on when that is gone."""
    world = World(*ONLY)
    world.add()
    world.cluster.put_autoscaler("web", spec())
    await world.start()
    await world.advance(31)
    refused = (world.replicas(), world.conditions(POD_AUTOSCALERS)["ScalingActive"])
    world.cluster.delete(HPAS, "web")
    await world.advance(16)
    await world.close()
    assert (*refused, world.replicas()) == (2, "AmbiguousSelector", 4)


@pytest.mark.parametrize("kinds", [ONLY, BOTH], ids=["alone", "with others"])
async def test_another_controller_does_not_matter(kinds: tuple[autoscaler_kinds.AutoscalerKind, ...]) -> None:
    """PodAutoscalers are looked after while another controller is at work on HorizontalPodAutoscalers."""
    world = World(*kinds, other_controller=standby.REFUSE)
    world.add()
    world.cluster.put_deployment("api", 1)
    world.cluster.put_pod("api-0", "api", "1000m")
    world.cluster.put_autoscaler("api", spec("api"))
    now = instants.text(world.clock.now_ns())
    world.cluster.report("api", {"desiredReplicas": 1}, manager="kube-controller-manager", at=now)
    await world.start()
    await world.advance(16)
    await world.close()
    assert (world.replicas(), world.replicas("api")) == (4, 1)


async def test_another_target_of_the_other_does_not_matter() -> None:
    """A HorizontalPodAutoscaler of another target is no rival."""
    world = World(*ONLY)
    world.add()
    world.cluster.put_deployment("api", 1)
    world.cluster.put_autoscaler("web", spec("api"))
    await world.start()
    await world.advance(1)
    await world.close()
    assert world.replicas() == 4


async def test_one_that_takes_over_waits() -> None:
    """Made from a HorizontalPodAutoscaler that is still there, it says that it waits, and begins when that is gone."""
    world = World(*ONLY)
    world.cluster.put_autoscaler("web", spec(), uid="u1")
    world.add(**{handover.MIGRATED_FROM: "hpa/web/u1"})
    await world.start()
    await world.advance(31)
    before = (world.replicas(), [(each["reason"], each["message"]) for each in world.cluster.events])
    writes = [each.method for each in world.cluster.requests if each.method == "PUT"]
    world.cluster.delete(HPAS, "web")
    await world.advance(1)
    await world.close()
    assert (before, writes) == ((2, [("WaitingForHandover", "waits until hpa/web/u1 is gone")]), [])
    assert world.replicas() == 4


async def test_one_that_is_handed_over_stops() -> None:
    """Marked, it is left alone at once and says so; the HorizontalPodAutoscaler that follows has no rival."""
    world = World(*BOTH)
    world.add(cpu="500m")
    await world.start()
    await world.advance(3)
    old = world.pod_autoscaler()
    marked = old["metadata"] | {"annotations": {handover.MIGRATING_TO: "hpa"}}
    world.cluster._store(POD_AUTOSCALERS, old | {"metadata": marked})
    await world.advance(1)
    said = [each["message"] for each in world.cluster.events if each["reason"] == handover.WAITING]
    world.cluster.put_pod("web-0", "web", "1000m")
    world.cluster.put_pod("web-1", "web", "1000m")
    await world.advance(16)
    left_alone = world.replicas()
    world.cluster.put_autoscaler("web", spec())
    await world.advance(16)
    await world.close()
    assert (said, left_alone, world.replicas()) == (["no longer managed: it becomes a hpa"], 2, 4)


async def test_a_history_is_handed_over() -> None:
    """A recommendation in the annotation holds a scale-down back as if this process had made it."""
    world = World(*ONLY)
    now_ns = world.clock.now_ns()
    remembered = History(recommendations=(Recommendation(5, now_ns - 200 * 10**9), Recommendation(2, now_ns)))
    record = history_record.encode(HistoryRecord("u1", "migrate", now_ns, remembered))
    world.add(cpu="100m", replicas=5, **{handover.HISTORY: record})
    await world.start()
    held = world.replicas()
    await world.advance(170)
    await world.close()
    assert (held, world.replicas()) == (5, 2)


async def test_a_missing_definition_holds_nothing_up() -> None:
    """Where both kinds are looked after and PodAutoscalers are not served, the others are; later ones are found."""
    world = World(*BOTH)
    del world.cluster.collections[POD_AUTOSCALERS]
    world.add_web(cpu="1000m", replicas=2)
    await world.start()
    await world.advance(2)
    assert (world.replicas(), world.controller.unready()) == (4, [])
    world.cluster.serve_pod_autoscalers()
    world.cluster.put_deployment("api", 1)
    world.cluster.put_pod("api-0", "api", "1000m")
    world.cluster.put_autoscaler("api", spec("api"), uid="pa", path=POD_AUTOSCALERS)
    await world.advance(30)
    await world.close()
    assert world.replicas("api") == 2


async def test_alone_a_missing_definition_is_told() -> None:
    """Where only PodAutoscalers are looked after, /readyz says that they are not served."""
    world = World(*ONLY)
    del world.cluster.collections[POD_AUTOSCALERS]
    await world.start()
    await world.advance(2)
    reasons = world.controller.unready()
    await world.close()
    assert reasons == ["podautoscalers are not listed yet: the server could not find the requested resource"]


@pytest.mark.parametrize("text", ["", "hpa,keda", "HPA"])
def test_kinds_that_are_none(text: str) -> None:
    """What is not a kind is refused by name."""
    with pytest.raises(ValueError, match="is none of hpa, podautoscaler"):
        autoscaler_kinds.parse(text)


def test_kinds() -> None:
    """Each once, in a fixed order."""
    assert autoscaler_kinds.parse("podautoscaler, hpa,hpa") == BOTH
