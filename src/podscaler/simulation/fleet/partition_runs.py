"""Runs the partitions of a fleet as tasks of Dask, and writes their rows as they arrive.

Called by `podscaler backtest --fleet`. Whatever changes the rows of equal input, such as a new column, needs another
_FILE_FORMAT.

Invariants: at most two tasks for each worker are submitted at a time. A task computes the same rows wherever and
however often it runs, so Dask may repeat those of a worker that died. A partition whose file was computed from the same
input is not computed again.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from distributed import Client, Future, KilledWorker, as_completed

from podscaler.base.errors import UsageError
from podscaler.base.version import __version__
from podscaler.simulation.fleet import candidate_rows, cluster, result_files
from podscaler.simulation.fleet.autoscalers import FleetRow, MakeTrial, Partition
from podscaler.simulation.fleet.cluster import ClusterRequest

_TASKS_PER_WORKER = 2
_FILE_FORMAT = 1
"""The version of the result files; another number makes all files be computed anew."""
_ROWS = msgspec.msgpack.Decoder(list[FleetRow])


class FleetProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run is.

    Attributes:
        partitions, done: the number of all partitions, and of those whose file is written.
        kept: of `done`, those whose file is of an earlier run.
        autoscalers: the number of autoscalers in the partitions that this run computed.
    """

    partitions: int
    done: int
    kept: int
    autoscalers: int


class FleetRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is run.

    Attributes:
        make_trial: for each autoscaler; it is sent to the workers.
        description: of `make_trial`: a text that differs where its trials do.
        folder: of the results.
    """

    partitions: Sequence[Partition]
    make_trial: MakeTrial
    description: str
    folder: Path


def run(fleet: FleetRun, request: ClusterRequest, on_progress: Callable[[FleetProgress], None]) -> FleetProgress:
    """Write the file of every partition that is not there yet, and return the progress at the end.

    Args:
        request: for the cluster that computes.
        on_progress: called at the start, and after each file.

    Raises UsageError if the scheduler cannot be reached, a file cannot be read or written, or a partition ends its
    worker again and again.
    """
    fingerprints = {partition.name: _fingerprint(partition, fleet.description) for partition in fleet.partitions}
    missing_partitions = [
        partition
        for partition in fleet.partitions
        if not result_files.is_present(fleet.folder, partition.name, fingerprints[partition.name])
    ]
    total, kept_count = len(fleet.partitions), len(fleet.partitions) - len(missing_partitions)
    progress = FleetProgress(partitions=total, done=kept_count, kept=kept_count, autoscalers=0)
    on_progress(progress)
    if not missing_partitions:
        return progress
    with cluster.connect(request) as client:
        for name, rows in _compute_partitions(client, missing_partitions, fleet.make_trial):
            result_files.write(fleet.folder, name, fingerprints[name], rows)
            autoscalers = progress.autoscalers + len({row.autoscaler for row in rows})
            progress = FleetProgress(partitions=total, done=progress.done + 1, kept=kept_count, autoscalers=autoscalers)
            on_progress(progress)
    return progress


def _fingerprint(partition: Partition, description: str) -> str:
    """A digest of everything that the rows of a partition depend on: the program, its input, and the trials."""
    fingerprint_json = msgspec.json.encode(
        [_FILE_FORMAT, __version__, partition.name, partition.fingerprint, description]
    )
    return hashlib.blake2b(fingerprint_json, digest_size=16).hexdigest()


def _compute_partitions(
    client: Client, partitions: Sequence[Partition], make_trial: MakeTrial
) -> Iterator[tuple[str, list[FleetRow]]]:
    """The rows of each partition, in the order in which they are ready. Raises UsageError."""
    waiting_partitions = iter(partitions)
    name_by_future: dict[Future[bytes], str] = {}
    completed_futures = as_completed(loop=client.loop)  # type: ignore[no-untyped-call] # distributed has no annotations here

    def submit() -> None:
        """Submit the next partition, if there is one."""
        partition = next(waiting_partitions, None)
        if partition is not None:
            future = client.submit(compute, partition, make_trial, pure=False)  # never the result of an equal call
            name_by_future[future] = partition.name
            completed_futures.add(future)  # type: ignore[no-untyped-call] # as above

    worker_count = max(len(client.scheduler_info()["workers"]), 1)
    for _ in range(_TASKS_PER_WORKER * worker_count):
        submit()
    for future in completed_futures:
        name = name_by_future.pop(future)
        yield name, _ROWS.decode(_wait_for_result(future, name))
        future.release()
        submit()


def _wait_for_result(future: "Future[bytes]", name: str) -> bytes:
    """The rows of a partition as MessagePack. Raises UsageError if Dask gave up on its worker."""
    try:
        return future.result()
    except KilledWorker:
        raise UsageError(
            f"{name} ended its worker again and again, probably for memory; use smaller partitions or more memory"
        ) from None


def compute(partition: Partition, make_trial: MakeTrial) -> bytes:
    """The rows of a partition as MessagePack: the task of a worker. Raises UsageError."""
    rows = [row for autoscaler in partition.autoscalers() for row in candidate_rows.rows(autoscaler, make_trial)]
    return msgspec.msgpack.encode(rows)
