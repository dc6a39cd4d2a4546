"""Simulates many candidates of one autoscaler over one workload, in machine code.

    compiled = batch.compile_scenario(scenario)          # raises NotCovered, which says why
    result = batch.run(compiled, candidates)             # one row for each spec
    result = batch.evaluate(scenario, candidates)        # both, and the exact engine for what is not covered

The results are those of `podscaler.simulation.engine` at every sync. Importing this package imports numpy and numba
(the extra `simulation`).

Entry point: `batch_runs`. Reading order: `layout` (the arrays), `candidate_tables` and `scenario_tables` (inputs as
arrays), then in machine code `compilation`, `world_kernel`, `metric_kernel`, `decision_kernel`, `candidate_kernel`.
May import: `simulation.engine`, `simulation.world`, `simulation.model`, `core`, `api`.
"""

from podscaler.simulation.batch.batch_runs import (
    BatchResult,
    Deviations,
    Measures,
    compile_scenario,
    evaluate,
    find_obstacle,
    run,
    run_exactly,
)
from podscaler.simulation.batch.candidate_tables import NotCovered
from podscaler.simulation.batch.scenario_tables import BatchScenario

__all__ = [
    "BatchResult",
    "BatchScenario",
    "Deviations",
    "Measures",
    "NotCovered",
    "compile_scenario",
    "evaluate",
    "find_obstacle",
    "run",
    "run_exactly",
]
