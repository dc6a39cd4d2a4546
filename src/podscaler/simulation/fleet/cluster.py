"""Starts a local Dask cluster, or connects to one that runs.

Called by `partition_runs`. A local cluster is made of processes that listen on loopback; no dashboard is served.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import dask
import msgspec
from distributed import Client, LocalCluster
from distributed.security import Security

from podscaler.base.errors import UsageError

_NO_HTTP_ROUTES: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
_ANY_PORT = "127.0.0.1:0"
"""Dask opens a port for HTTP in any case; without routes it responds with 404 to every request."""


class ClusterRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which cluster computes.

    Attributes:
        workers: the number of processes of a local cluster.
        memory: the memory limit of each, in Dask's form; Dask restarts a worker that exceeds it.
        scheduler: the address of a running scheduler, in place of a local cluster; empty if a local cluster is started.
            Certificates are those of Dask's own configuration (`distributed.comm.tls`).
        connect_s: how long the scheduler may take to respond.
    """

    workers: int = 2
    memory: str = "1GiB"
    scheduler: str = ""
    connect_s: float = 15


@contextmanager
def connect(request: ClusterRequest) -> Iterator[Client]:
    """A client of the cluster; a local cluster ends with it. Raises UsageError if no scheduler responds."""
    if request.scheduler:
        with _connect_to_scheduler(request) as client:
            yield client
        return
    with (
        dask.config.set(_NO_HTTP_ROUTES),
        LocalCluster(  # type: ignore[no-untyped-call] # distributed's constructors have no annotations
            n_workers=request.workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            memory_limit=request.memory,
            dashboard_address=_ANY_PORT,
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,  # type: ignore[no-untyped-call] # as above
    ):
        yield client


def _connect_to_scheduler(request: ClusterRequest) -> Client:
    """A client of the running scheduler. Raises UsageError if it does not respond, or certificates are missing."""
    address = request.scheduler
    _check_certificates(address)
    try:
        return Client(address, timeout=request.connect_s, set_as_default=False)  # type: ignore[no-untyped-call] # as above
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"the Dask scheduler {address} cannot be reached: {error}") from None


def _check_certificates(address: str) -> None:
    """Raises UsageError if an address needs certificates (`tls://`) that Dask's configuration lacks."""
    if not address.startswith("tls://"):
        return
    try:
        ssl_context = Security().get_connection_args("client")["ssl_context"]  # type: ignore[no-untyped-call] # as above
    except (OSError, ValueError) as error:
        raise UsageError(f"the certificates of Dask's configuration cannot be used: {error}") from None
    if ssl_context is None:
        raise UsageError(
            f"{address} needs certificates: set distributed.comm.tls.ca-file, client.cert and client.key in Dask's "
            "configuration"
        )
