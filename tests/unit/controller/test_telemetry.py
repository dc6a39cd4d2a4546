"""The exposed metrics: names, labels, buckets, help texts, and the values of the work queue's."""

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from podscaler.controller.queue import MeteredQueue
from podscaler.controller.recording.recording import Recording
from podscaler.controller.telemetry.telemetry import Telemetry
from podscaler.testing import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    """Virtual time."""
    return VirtualClock()


@pytest.fixture
def telemetry(clock: VirtualClock) -> Telemetry:
    """A controller's metrics, everything reported once."""
    made = Telemetry(clock)
    made.reconciled("scale_up", "none", 0.003)
    made.metric_computed("none", "internal", metric_type="Resource", duration_s=0.1)
    made.autoscaler_added()
    made.set_desired(("shop", "web"), 3)
    made.stale_skip()
    return made


def _samples(telemetry: Telemetry) -> dict[str, float]:
    samples = {}
    for family in text_string_to_metric_families(telemetry.render().decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            samples[f"{sample.name}{{{labels}}}"] = sample.value
    return samples


P = "horizontal_pod_autoscaler_controller"


@pytest.mark.parametrize(
    ("series", "value"),
    [
        (f"{P}_reconciliations_total{{action=scale_up,error=none}}", 1),
        (f"{P}_reconciliation_duration_seconds_count{{action=scale_up,error=none}}", 1),
        (f"{P}_reconciliation_duration_seconds_bucket{{action=scale_up,error=none,le=0.002}}", 0),
        (f"{P}_reconciliation_duration_seconds_bucket{{action=scale_up,error=none,le=0.004}}", 1),
        (f"{P}_reconciliation_duration_seconds_bucket{{action=scale_up,error=none,le=16.384}}", 1),
        (f"{P}_metric_computation_total{{action=none,error=internal,metric_type=Resource}}", 1),
        (f"{P}_metric_computation_duration_seconds_sum{{action=none,error=internal,metric_type=Resource}}", 0.1),
        (f"{P}_num_horizontal_pod_autoscalers{{}}", 1),
        (f"{P}_desired_replicas{{hpa_name=web,namespace=shop}}", 3),
        (f"{P}_stale_sync_skips_total{{group=autoscaling,resource=horizontalpodautoscalers}}", 1),
    ],
)
def test_series(telemetry: Telemetry, series: str, value: float) -> None:
    """Every series has upstream's name and labels."""
    assert _samples(telemetry)[series] == value


def test_buckets(telemetry: Telemetry) -> None:
    """Durations have 15 buckets from 1 ms, doubling; the queue's have 10, from 10 ns, times ten."""
    names = [name for name in _samples(telemetry) if "le=" in name]
    durations = [name for name in names if name.startswith(f"{P}_reconciliation_d")]
    queue = [name.partition("le=")[2].partition(",")[0] for name in names if name.startswith("workqueue_work")]
    assert (len(durations), queue) == (
        16,
        ["1e-08", "1e-07", "1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1", "1.0", "10.0", "+Inf"],
    )


def test_help_names_the_stability(telemetry: Telemetry) -> None:
    """HELP texts begin with the stability level."""
    text = telemetry.render().decode()
    labels = (
        "The label 'action' should be either 'scale_down', 'scale_up', or 'none'. "
        "Also, the label 'error' should be either 'spec', 'internal', or 'none'. "
        "Note that if both spec and internal errors happen during a reconciliation, "
        "the first one to occur is reported in `error` label."
    )
    first = f"# HELP {P}_reconciliations_total [BETA] Number of reconciliations of HPA controller. {labels}\n"
    assert first in text
    assert f"# HELP {P}_stale_sync_skips_total [ALPHA] Total number of HPA syncs skipped due to a stale watch" in text


def test_no_created_series(telemetry: Telemetry) -> None:
    """Only what upstream exposes: no `_created` series."""
    assert "_created" not in telemetry.render().decode()


async def test_the_queue_is_measured(clock: VirtualClock) -> None:
    """Depth, adds, delayed adds, time in the queue and time at work, and the age of unfinished work."""
    telemetry = Telemetry(clock)
    queue = MeteredQueue(clock, telemetry.queue, period_s=15.0)
    for name in ("a", "b", "a"):
        queue.add(("ns", name))
    await clock.advance(2)
    key = await queue.get()
    await clock.advance(3)
    waiting = _samples(telemetry)
    queue.done(key)
    queue.add_after(key, 15)
    done = _samples(telemetry)
    queue.shut_down()
    await asyncio.sleep(0)
    label = "{name=horizontalpodautoscaler}"
    assert {
        name: value
        for name, value in waiting.items()
        if name.startswith("workqueue") and "bucket" not in name and "_info" not in name
    } == {
        f"workqueue_depth{label}": 1,
        f"workqueue_adds_total{label}": 2,
        f"workqueue_retries_total{label}": 0,
        f"workqueue_queue_duration_seconds_count{label}": 1,
        f"workqueue_queue_duration_seconds_sum{label}": 2,
        f"workqueue_work_duration_seconds_count{label}": 0,
        f"workqueue_work_duration_seconds_sum{label}": 0,
        f"workqueue_unfinished_work_seconds{label}": 3,
        f"workqueue_longest_running_processor_seconds{label}": 3,
    }
    assert (done[f"workqueue_work_duration_seconds_sum{label}"], done[f"workqueue_retries_total{label}"]) == (3, 1)


class Recorded(Recording):
    """A recording with figures."""

    is_on = True
    lines_written = 5
    lines_lost = 2


def test_a_recording_is_counted_where_there_is_one() -> None:
    """Lines written and lost are shown with a recording, and not without."""
    shown = []
    for recording in (Recorded(), Recording()):
        telemetry = Telemetry(VirtualClock())
        telemetry.add_recording_metrics(recording)
        shown.append({name: value for name, value in _samples(telemetry).items() if "recording" in name})
    assert shown == [{"podscaler_recording_lines_total{}": 5, "podscaler_recording_lost_lines_total{}": 2}, {}]
