"""Any valid scenario file gives the same result again with the same seed, whatever its load."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from podscaler.simulation import engine
from podscaler.simulation.files.scenario_file import ScenarioFile
from podscaler.simulation.model import results
from unit.simulation.scenario_texts import read

AMOUNTS = st.integers(0, 3000).map(lambda milli: f"{milli}m")
SECONDS = st.integers(1, 300).map(lambda seconds: f"{seconds}s")
SHAPES = st.one_of(
    AMOUNTS,
    st.builds("{{step: {{from: {}, to: {}, at: {}}}}}".format, AMOUNTS, AMOUNTS, SECONDS),
    st.builds("{{ramp: {{from: {}, to: {}, at: {}, over: {}}}}}".format, AMOUNTS, AMOUNTS, SECONDS, SECONDS),
    st.builds("{{diurnal: {{high: {}, period: {}}}}}".format, AMOUNTS, SECONDS),
    st.builds("{{spike: {{height: {}, at: {}, rise: {}, hold: {}}}}}".format, AMOUNTS, SECONDS, SECONDS, SECONDS),
    st.builds("{{steps: {{0s: {}, {}: {}}}}}".format, AMOUNTS, SECONDS, AMOUNTS),
)
NOISE = st.builds("{{noise: {{deviation: {}%, every: {}}}}}".format, st.integers(1, 50), SECONDS)
STARTUPS = st.one_of(SECONDS, st.builds("{{median: {}, p95: 400s}}".format, SECONDS))


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """The body of a scenario of five minutes."""
    loads = [*draw(st.lists(SHAPES, min_size=1, max_size=3)), *draw(st.lists(NOISE, max_size=2))]
    requests = f"requests: {{rate: [{', '.join(loads)}], cpuPerRequest: 200ms}}"
    load = draw(st.sampled_from([requests, f"cpu: [{', '.join(loads)}]"]))
    workload = f"startup: {draw(STARTUPS)}, crashesPerHour: {draw(st.integers(0, 20))}, load: {{{load}}}"
    dropout = f"metricsServer: {{dropout: {draw(st.integers(0, 30))}%}}"
    return f"duration: 5m\n{dropout}\nworkloads: {{web: {{{workload}}}}}\n"


def rows(found: ScenarioFile) -> list[results.TimelineRow]:
    return [results.row(sync) for sync in engine.simulate(found.scenario)]


@given(bodies(), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_equal_files_and_seeds_give_equal_results(body: str, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, again = (read(Path(folder), body, seed=seed) for _ in range(2))
    assert first == again
    assert rows(first) == rows(again)


@given(bodies())
@settings(max_examples=40, deadline=None)
def test_replicas_stay_within_the_bounds_of_the_autoscaler(body: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = read(Path(folder), body)
    assert all(1 <= row.replicas <= 10 for row in rows(found))
