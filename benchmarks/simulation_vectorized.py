"""A sketch of the batch engine with numpy: one operation for all candidates at each sync.

Compared by `benchmarks/simulation.py` with the compiled engine. It leaves out most of the model: pods are ready at
once, all have samples, there is no behavior and no backlog; what is left is the decision for one CPU metric with the
window of the flag. The full engine would need a multiple of these operations.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]


def simulate(demand_ucores: Numbers, targets_pct: Numbers, request_ucores: int, window: int) -> Numbers:
    """The replicas of each candidate after the last sync.

    Args:
        demand_ucores: for each sync.
        targets_pct: one for each candidate.
        window: of recommendations, in syncs.
    """
    replicas = np.full(len(targets_pct), 10, np.int64)
    recommended = np.zeros((window, len(targets_pct)), np.int64)
    for sync, demand in enumerate(demand_ucores):
        used_milli = -(-int(demand) // (replicas * 1000))
        percent = used_milli * replicas * 100 // (request_ucores // 1000 * replicas)
        ratio = percent / targets_pct
        proposal = np.where(np.abs(ratio - 1.0) <= 0.1, replicas, np.ceil(ratio * replicas)).astype(np.int64)
        recommended[sync % window] = proposal
        wanted = recommended.max(axis=0)
        highest = np.minimum(np.maximum(2 * replicas, 4), 60)
        replicas = np.clip(wanted, 1, highest)
    return replicas
