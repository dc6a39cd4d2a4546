"""How fast decisions are made and recordings are replayed, as a table.

    .venv/bin/python -m benchmarks.decide

Inputs of `decide` are facts (parsed already); the replay starts from compressed JSON. Time is CPU time of one core.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from podscaler.api.typed import autoscaling
from podscaler.cli.commands import replay as command
from podscaler.core import decide, replay
from podscaler.core.model import history, spec
from podscaler.core.model.history import History
from podscaler.core.model.observation import ContainerRequests, Observation, Pod, PodSamples, Sample, Scale
from podscaler.core.model.spec import Spec

SECOND_NS = 1_000_000_000
START = 1_767_225_600 * SECOND_NS
VECTORS = Path(__file__).parent.parent / "tests" / "conformance" / "vectors"

Row = tuple[str, str, str]


def autoscaler(behavior: autoscaling.HorizontalPodAutoscalerBehavior | None = None) -> Spec:
    """An autoscaler with one CPU metric, 50 % of the request."""
    return spec.parse(
        "default",
        "web",
        autoscaling.HorizontalPodAutoscalerSpec(
            scale_target_ref=autoscaling.CrossVersionObjectReference("Deployment", "web", "apps/v1"),
            max_replicas=5000,
            metrics=(
                autoscaling.MetricSpec(
                    "Resource",
                    resource=autoscaling.ResourceMetricSource(
                        "cpu", autoscaling.MetricTarget("Utilization", average_utilization=50)
                    ),
                ),
            ),
            behavior=behavior,
        ),
    )


def observation(count: int, used_milli: int, *, missing: int = 0) -> Observation:
    """`count` ready pods that use `used_milli` of 500m each; the last `missing` have no sample."""
    requests = {"cpu": 500, "memory": 256 * 1024 * 1024 * 1000}
    pods = [
        Pod(
            name=f"web-{index}",
            labels={"app": "web", "pod-template-hash": "5d4f"},
            started_at=START - 3600 * SECOND_NS,
            ready="True",
            ready_changed_at=START - 3590 * SECOND_NS,
            containers=(ContainerRequests("app", requests),),
            requests_milli=requests,
        )
        for index in range(count)
    ]
    samples = {pod.name: Sample(used_milli, START, 15 * SECOND_NS) for pod in pods[: count - missing]}
    return Observation(scale=Scale(count, count, "app=web"), pods=pods, metrics=[PodSamples(samples)])


def decisions_per_s(scaler: Spec, seen: Observation, seconds: float = 1.0) -> float:
    """Decisions a second, one every 15 s of virtual time, each with the status and the history of the one before."""
    past, now, done = history.EMPTY, START, 0
    begun = time.process_time()
    while (elapsed := time.process_time() - begun) < seconds:
        decision = decide.decide(scaler, seen, past, now)
        seen = msgspec.structs.replace(seen, status=decision.status)
        past, now, done = decision.history, now + 15 * SECOND_NS, done + 1
    return done / elapsed


def decide_rows() -> list[Row]:
    """One row for each situation."""
    behavior = autoscaling.HorizontalPodAutoscalerBehavior()
    cases: list[tuple[str, Spec, Observation]] = [
        ("5 pods, on target", autoscaler(), observation(5, 250)),
        ("5 pods, scale-up", autoscaler(), observation(5, 400)),
        ("5 pods, scale-up, behavior", autoscaler(behavior), observation(5, 400)),
        ("5 pods, scale-down held back", autoscaler(), observation(5, 100)),
        ("1,000 pods, on target", autoscaler(), observation(1000, 250)),
        ("1,000 pods, 100 without samples", autoscaler(), observation(1000, 400, missing=100)),
    ]
    rows = []
    for name, scaler, seen in cases:
        rate = decisions_per_s(scaler, seen)
        rows.append((f"decide: one CPU metric, {name}", f"{rate:,.0f}/s", f"{1e3 / rate:.3f} ms"))
    return rows


def history_row() -> Row:
    """How much an autoscaler remembers after a day of syncs every 15 s with a window of an hour."""
    rules = autoscaling.HPAScalingRules(stabilization_window_seconds=3600)
    scaler = autoscaler(autoscaling.HorizontalPodAutoscalerBehavior(scale_down=rules))
    seen, past = observation(5, 400), history.EMPTY
    for turn in range(24 * 240):
        past = decide.decide(scaler, seen, past, START + turn * 15 * SECOND_NS).history
    entries = len(past.recommendations) + len(past.scale_ups) + len(past.scale_downs)
    return "history after a day, window of an hour", f"{entries} entries", f"{_history_bytes(past):,} bytes"


def _history_bytes(past: History) -> int:
    lists = (past.recommendations, past.scale_ups, past.scale_downs)
    return sum(sys.getsizeof(entries) + sum(sys.getsizeof(entry) for entry in entries) for entries in lists)


def replay_row() -> Row:
    """All recordings of the conformance suite in one process, decoding and encoding included."""
    encode = msgspec.json.Encoder().encode
    paths = sorted(VECTORS.glob("*.recording.jsonl.gz"))
    begun, syncs = time.process_time(), 0
    for path in paths:
        with path.open("rb") as packed:
            syncs += sum(1 for decision in replay.decisions(command.read_lines(packed)) if encode(decision))
    elapsed_s = time.process_time() - begun
    return f"replay: {syncs:,} syncs of {len(paths)} recordings", f"{syncs / elapsed_s:,.0f}/s", f"{elapsed_s:.2f} s"


def main(print_row: Callable[..., None] = print) -> None:
    """Print the table."""
    for name, rate, each in [*decide_rows(), history_row(), replay_row()]:
        print_row(f"{name:<62} {rate:>14} {each:>14}")


if __name__ == "__main__":
    main()
