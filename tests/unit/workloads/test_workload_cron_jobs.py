"""The CronJob controller on a real registry in virtual time, and the schedules of CronJobs."""

import asyncio

import pytest

from podscaler.api.kinds import catalog
from podscaler.api.kinds.apps.cron_schedule import CronSchedule, ScheduleError, parse_zone
from podscaler.api.machinery import instants
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.batch.cronjobs import SCHEDULED_AT, CronJobs
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop
from podscaler.testing import VirtualClock
from podscaler.testing.registry import open_registry

JOBS, CRON_JOBS = "jobs.batch", "cronjobs.batch"


class World:
    """Registry and controller; `pass_time` runs it."""

    def __init__(self, registry, clock):
        self.registry, self.clock = registry, clock

    async def pass_time(self, span_s=0.0):
        for _ in range(6):
            await self.clock.advance(span_s / 6 + 0.001, turns=60)

    async def create(self, **spec):
        pod_spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/app"}]}
        job_template = {"spec": {"template": {"spec": pod_spec}}}
        metadata = {"name": "nightly", "namespace": "default"}
        spec = {"schedule": "* * * * *", "jobTemplate": job_template, **spec}
        await self.registry.create(
            CRON_JOBS, {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}
        )
        await self.pass_time()

    async def complete(self, *types):
        for job, type_ in zip(self.registry.list(JOBS), types, strict=True):
            now = instants.text(self.clock.now_ns())
            end = {"type": type_, "status": "True", "lastTransitionTime": now}
            status = {"conditions": [end], "startTime": now} | ({"completionTime": now} if type_ == "Complete" else {})

            def change(newest, status=status):
                newest["status"] = status

            await self.registry.mutate(JOBS, "default", job["metadata"]["name"], change, subresource="status")
        await self.pass_time()

    def jobs(self):
        return [job["metadata"]["name"] for job in self.registry.list(JOBS)]

    def status(self):
        return self.registry.get(CRON_JOBS, "default", "nightly")["status"]

    def reasons(self):
        return [event["reason"] for event in self.registry.list("events")]


@pytest.fixture
async def world(tmp_path):
    clock = VirtualClock()
    async with open_registry(tmp_path, catalog.RESOURCES, clock) as opened:
        task = asyncio.create_task(ControlLoop(CronJobs(opened.registry, clock), opened.registry, clock).run())
        yield World(opened.registry, clock)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_job_is_created_each_minute_with_its_time_in_the_name(world):
    await world.create()
    assert world.jobs() == []
    await world.pass_time(61)
    minute = world.clock.now_ns() // NANOSECONDS // 60
    assert world.jobs() == [f"nightly-{minute}"]
    assert [one["name"] for one in world.status()["active"]] == world.jobs()
    at = instants.text(minute * 60 * NANOSECONDS)
    job = world.registry.list(JOBS)[0]
    assert (world.status()["lastScheduleTime"], job["metadata"]["annotations"][SCHEDULED_AT]) == (at, at)


@pytest.mark.parametrize(
    ("policy", "count", "reason"),
    [
        pytest.param("Allow", 2, "SuccessfulCreate", id="both run"),
        pytest.param("Forbid", 1, "JobAlreadyActive", id="the second is left out"),
        pytest.param("Replace", 1, "SuccessfulDelete", id="the first is deleted"),
    ],
)
async def test_the_concurrency_policy(world, policy, count, reason):
    await world.create(concurrencyPolicy=policy)
    await world.pass_time(61)
    await world.pass_time(60)
    assert (len(world.jobs()), reason in world.reasons()) == (count, True)


async def test_a_suspended_cron_job_creates_nothing(world):
    await world.create(suspend=True)
    await world.pass_time(121)
    assert world.jobs() == []


async def test_a_finished_job_is_no_longer_active_and_old_ones_are_removed(world):
    await world.create(successfulJobsHistoryLimit=0, failedJobsHistoryLimit=1)
    await world.pass_time(61)
    await world.pass_time(60)
    kept = world.jobs()[1]
    await world.complete("Complete", "Failed")
    assert (world.jobs(), world.status().get("active")) == ([kept], None)
    assert "lastSuccessfulTime" in world.status()


async def test_of_many_missed_times_the_last_gets_a_job(world):
    await world.create(suspend=True)
    await world.pass_time(3 * 3600)
    await world.registry.mutate(CRON_JOBS, "default", "nightly", lambda one: one["spec"].update(suspend=False))
    await world.pass_time()
    assert world.jobs() == [f"nightly-{world.clock.now_ns() // NANOSECONDS // 60}"]
    assert "TooManyMissedTimes" in world.reasons()


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        pytest.param("30 4 * * *", None, "2026-01-01T04:30:00Z", id="UTC"),
        pytest.param("30 4 * * *", "Europe/Berlin", "2026-01-01T03:30:00Z", id="in a zone"),
        pytest.param("@hourly", None, "2026-01-01T01:00:00Z", id="macro"),
        pytest.param("0 1 */2 * 1", None, "2026-01-01T01:00:00Z", id="odd days or Mondays"),
        pytest.param("0 1 5 * */2", None, "2026-01-01T01:00:00Z", id="the 5th or every other day of the week"),
        pytest.param("0 1 */1 * 1", None, "2026-01-05T01:00:00Z", id="Mondays: a step of 1 is no restriction"),
        pytest.param("0 1 5,* * 1", None, "2026-01-05T01:00:00Z", id="Mondays: a star in a list"),
        pytest.param("5/20,,7 * * * *", None, "2026-01-01T00:05:00Z", id="a step without an end, an empty part"),
    ],
)
def test_the_next_time_of_a_schedule(text, zone, expected):
    schedule = CronSchedule(text, parse_zone(zone) if zone else None)
    assert instants.text(schedule.next_ns(instants.parse("2026-01-01T00:00:00Z"))) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("* * *", "expected exactly 5 fields, found 3: [* * *]", id="too few fields"),
        pytest.param("@often", "unrecognized descriptor: @often", id="unknown macro"),
        pytest.param("0 0 L * *", 'failed to parse int from L: strconv.Atoi: parsing "L": invalid syntax', id="last"),
        pytest.param("0 0 * * 7", "end of range (7) above maximum (6): 7", id="Sunday as 7"),
        pytest.param("* * * 13 *", "end of range (13) above maximum (12): 13", id="month 13"),
        pytest.param("*/0 * * * *", "Bad minute", id="a step of 0"),
    ],
)
def test_invalid_schedules(text, message):
    with pytest.raises(ScheduleError) as raised:
        CronSchedule(text)
    assert str(raised.value) == message


def test_a_day_that_never_comes_is_valid():
    """As upstream's; it has no next time."""
    with pytest.raises(ScheduleError):
        CronSchedule("0 0 31 2 *").next_ns(0)


async def test_invalid_cron_jobs_are_refused(world):
    with pytest.raises(StatusError) as raised:
        await world.create(schedule="TZ=UTC * * * * *", timeZone="Nowhere/Town", concurrencyPolicy="Never")
    fields = [cause.field for cause in raised.value.causes]
    assert fields == ["spec.schedule", "spec.timeZone", "spec.concurrencyPolicy"]
