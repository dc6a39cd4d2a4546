"""The Job controllers on a real registry, with pods whose ends the tests write, in virtual time."""

import asyncio

import pytest

from podscaler.api.kinds import catalog
from podscaler.base.clock import rfc3339
from podscaler.controlplane.controllers.batch import completion_indexes, failure_policy
from podscaler.controlplane.controllers.batch.finished_jobs import FinishedJobs
from podscaler.controlplane.controllers.batch.jobs import Jobs
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop
from podscaler.testing import VirtualClock
from podscaler.testing.node import PlayedNode
from podscaler.testing.registry import open_registry

JOBS, PODS = "jobs.batch", "pods"


class World:
    """Registry, node and controllers; `pass_time` runs them."""

    def __init__(self, registry, clock, node):
        self.registry, self.clock, self.node = registry, clock, node

    async def pass_time(self, span_s=0.0):
        for _ in range(6):
            await self.clock.advance(span_s / 6 + 0.001, turns=60)

    async def create(self, **spec):
        container = {"name": "main", "image": "example.com/app"}
        template = {"spec": {"restartPolicy": spec.pop("restartPolicy", "Never"), "containers": [container]}}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work", "namespace": "default"}}
        await self.registry.create(JOBS, {**job, "spec": {"template": template, **spec}})
        await self.pass_time()

    async def change(self, **spec):
        await self.registry.mutate(JOBS, "default", "work", lambda job: job["spec"].update(spec))
        await self.pass_time()

    async def finish(self, *codes, settle=True):
        """End the first active pods with these exit codes."""
        for pod, code in zip(self.active(), codes, strict=False):
            end = {"terminated": {"exitCode": code, "finishedAt": rfc3339(self.clock.now_ns())}}
            container = {"name": "main", "state": end, "image": "", "imageID": "", "ready": False, "restartCount": 0}
            status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [container], "conditions": []}

            def change(newest, status=status):
                newest["status"] = {**newest["status"], **status}

            await self.registry.mutate(PODS, "default", pod["metadata"]["name"], change, subresource="status")
        if settle:
            await self.pass_time()

    def active(self):
        unfinished = [pod for pod in self.registry.list(PODS) if pod["status"]["phase"] in ("Pending", "Running")]
        alive = [pod for pod in unfinished if "deletionTimestamp" not in pod["metadata"]]
        return sorted(
            alive, key=lambda pod: pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-completion-index", "")
        )

    def indexes(self):
        return [pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in self.active()]

    def status(self):
        return self.registry.get(JOBS, "default", "work")["status"]

    def counts(self):
        """Active, succeeded and failed."""
        return tuple(self.status().get(name, 0) for name in ("active", "succeeded", "failed"))

    def conditions(self):
        return [
            (one["type"], one["status"], one["reason"], one["message"]) for one in self.status().get("conditions", [])
        ]

    def events(self):
        return [(event["reason"], event["message"]) for event in self.registry.list("events")]


@pytest.fixture
async def world(tmp_path):
    clock = VirtualClock()
    async with open_registry(tmp_path, catalog.RESOURCES, clock) as opened:
        registry = opened.registry
        node = PlayedNode(registry, clock)
        loops = [ControlLoop(make(registry, clock), registry, clock) for make in (Jobs, FinishedJobs)]
        tasks = [asyncio.create_task(one) for one in (node.run(), *(loop.run() for loop in loops))]
        yield World(registry, clock, node)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_job_completes_after_its_completions(world):
    await world.create(completions=3, parallelism=2)
    assert world.counts() == (2, 0, 0)
    await world.finish(0, 0)
    assert world.counts() == (1, 2, 0)
    await world.finish(0)
    assert world.counts() == (0, 3, 0)
    text = "Reached expected number of succeeded pods"
    expected = [(kind, "True", "CompletionsReached", text) for kind in ("SuccessCriteriaMet", "Complete")]
    assert world.conditions() == expected
    assert world.status()["uncountedTerminatedPods"] == {}
    assert "completionTime" in world.status()
    assert ("Completed", "Job completed") in world.events()
    assert all(not pod["metadata"].get("finalizers") for pod in world.registry.list(PODS))


async def test_failed_pods_are_replaced_after_a_back_off_that_doubles(world):
    await world.create()
    await world.finish(1)
    seen = []
    for span_s in (9, 2):
        await world.pass_time(span_s)
        seen.append(world.counts())
    await world.finish(1)
    for span_s in (18, 3):
        await world.pass_time(span_s)
        seen.append(world.counts())
    assert seen == [(0, 0, 1), (1, 0, 1), (0, 0, 2), (1, 0, 2)]


@pytest.mark.parametrize(
    ("spec", "codes", "reason", "message"),
    [
        pytest.param(
            {"backoffLimit": 0}, [1], "BackoffLimitExceeded", "Job has reached the specified backoff limit", id="limit"
        ),
        pytest.param(
            {"activeDeadlineSeconds": 5},
            [],
            "DeadlineExceeded",
            "Job was active longer than specified deadline",
            id="deadline",
        ),
        pytest.param(
            {"completionMode": "Indexed", "completions": 1, "backoffLimitPerIndex": 0},
            [1],
            "FailedIndexes",
            "Job has failed indexes",
            id="index",
        ),
        pytest.param(
            {
                "completionMode": "Indexed",
                "completions": 3,
                "parallelism": 3,
                "backoffLimitPerIndex": 0,
                "maxFailedIndexes": 1,
            },
            [1, 1],
            "MaxFailedIndexesExceeded",
            "Job has exceeded the specified maximal number of failed indexes",
            id="indexes",
        ),
    ],
)
async def test_a_job_fails(world, spec, codes, reason, message):
    await world.create(**spec)
    await world.finish(*codes)
    await world.pass_time(8)
    assert world.conditions() == [(kind, "True", reason, message) for kind in ("FailureTarget", "Failed")]
    assert world.active() == []
    assert (reason, message) in world.events()


async def test_a_job_past_its_deadline_waits_for_the_end_of_its_pods(world):
    """Pods take a while to end; other work goes on meanwhile."""
    world.node.stop_s = 20
    await world.create(activeDeadlineSeconds=3)
    await world.pass_time(10)
    assert [kind for kind, *_ in world.conditions()] == ["FailureTarget"]
    assert world.registry.list(PODS) != []
    await world.pass_time(20)
    assert [kind for kind, *_ in world.conditions()] == ["FailureTarget", "Failed"]


async def test_pods_of_an_indexed_job_have_their_index(world):
    await world.create(completionMode="Indexed", completions=4, parallelism=3)
    assert world.indexes() == ["0", "1", "2"]
    pod = world.active()[1]
    assert pod["spec"]["hostname"] == "work-1"
    assert pod["metadata"]["name"].startswith("work-1-")
    assert pod["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"
    await world.finish(0, 0, 0)
    assert (world.status()["completedIndexes"], world.indexes()) == ("0-2", ["3"])


async def test_an_index_is_tried_again_with_its_failure_count(world):
    await world.create(completionMode="Indexed", completions=1, backoffLimitPerIndex=1)
    await world.finish(1)
    await world.pass_time(11)
    counts = [pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] for pod in world.active()]
    assert (counts, world.counts()) == (["1"], (1, 0, 1))


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        pytest.param("Ignore", (0, 0, 0), id="ignored"),
        pytest.param("Count", (0, 0, 1), id="counted"),
    ],
)
async def test_the_failure_policy_decides_what_counts(world, action, expected):
    codes = {"operator": "In", "values": [42]}
    await world.create(podFailurePolicy={"rules": [{"action": action, "onExitCodes": codes}]}, backoffLimit=1)
    await world.finish(42)
    assert world.counts() == expected


async def test_the_failure_policy_fails_the_job(world):
    codes = {"operator": "In", "values": [42]}
    await world.create(podFailurePolicy={"rules": [{"action": "FailJob", "onExitCodes": codes}]})
    name = world.active()[0]["metadata"]["name"]
    await world.finish(42)
    message = f"Container main for pod default/{name} failed with exit code 42 matching FailJob rule at index 0"
    assert world.conditions()[-1] == ("Failed", "True", "PodFailurePolicy", message)


async def test_the_success_policy_ends_the_job(world):
    await world.create(
        completionMode="Indexed", completions=3, parallelism=3, successPolicy={"rules": [{"succeededCount": 1}]}
    )
    await world.finish(0)
    await world.pass_time(1)
    assert world.conditions()[-1] == ("Complete", "True", "SuccessPolicy", "Matched rules at index 0")
    assert world.counts() == (0, 1, 0)


async def test_a_suspended_job_has_no_pods_until_it_is_resumed(world):
    await world.create(suspend=True)
    assert (world.counts(), "startTime" in world.status()) == ((0, 0, 0), False)
    await world.change(suspend=False)
    assert (world.counts(), "startTime" in world.status()) == ((1, 0, 0), True)
    await world.change(suspend=True)
    assert (world.counts(), world.conditions()) == ((0, 0, 0), [("Suspended", "True", "JobSuspended", "Job suspended")])


async def test_a_finished_job_expires(world):
    await world.create(ttlSecondsAfterFinished=30)
    await world.finish(0)
    await world.pass_time(28)
    assert "deletionTimestamp" not in world.registry.get(JOBS, "default", "work")["metadata"]
    await world.pass_time(4)
    job = world.registry.find(JOBS, "default", "work")
    assert job is None or "deletionTimestamp" in job["metadata"]


async def test_pods_of_a_deleted_job_lose_the_finalizer(world):
    await world.create()
    await world.registry.delete(JOBS, "default", "work", propagation="Background")
    await world.pass_time()
    assert [pod["metadata"].get("finalizers") for pod in world.registry.list(PODS)] in ([None], [[]])


@pytest.mark.parametrize(
    ("rule", "succeeded", "is_met"),
    [
        pytest.param({"succeededIndexes": "0-2147483646"}, {0, 7}, False, id="not all of many"),
        pytest.param({"succeededIndexes": "0-2147483646", "succeededCount": 2}, {0, 7}, True, id="enough of many"),
        pytest.param({"succeededIndexes": "1,3-5,9"}, {0, 1, 3, 4, 5, 9}, True, id="all"),
        pytest.param({"succeededIndexes": "1,3-5,9", "succeededCount": 3}, {0, 1, 2, 5, 8}, False, id="too few"),
        pytest.param({"succeededCount": 2}, {0, 1}, True, id="any"),
    ],
)
def test_success_policies_do_not_list_their_indexes(rule, succeeded, is_met):
    """A rule may name two thousand million of them."""
    job = {"spec": {"completions": 2**31 - 1, "successPolicy": {"rules": [rule]}}}
    assert bool(failure_policy.success_message(job, frozenset(succeeded))) == is_met


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        pytest.param(set(), "", id="none"),
        pytest.param({3}, "3", id="one"),
        pytest.param({1, 2}, "1,2", id="two in a row"),
        pytest.param({0, 1, 2, 7}, "0-2,7", id="three in a row"),
    ],
)
def test_indexes_are_written_and_read(indexes, text):
    assert completion_indexes.format_indexes(indexes) == text
    assert completion_indexes.parse_indexes(text, 10) == indexes
