"""The API server beside a real kube-apiserver with etcd: rates, latencies, CPU for each request, memory, as a table.

    .venv/bin/python -m benchmarks apiserver

The same bytes go to both, in turn. CPU is the server's alone (kube-apiserver's and etcd's together), in seconds for
1,000 requests. Without the programs of `make assets` only this project's server is measured.
"""

import contextlib
import resource
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import uvloop
from benchmarks import apiserver_cases as cases
from benchmarks import cluster_plane
from benchmarks.apiserver_cases import Result
from benchmarks.apiserver_sides import Ours, Real, Side

FILES = 4096
CASES: tuple[tuple[str, Callable[[Side], Awaitable[Result]]], ...] = (
    ("GET a pod", cases.get),
    ("LIST 1,000 pods", cases.list_pods),
    ("PUT a pod's status", cases.put_status),
    ("watch: events to 1,000 watchers", cases.fan_out),
)
HEAD = "| what | server | a second | p99 | CPU s for 1,000 | CPU, ratio |\n|---|---|---|---|---|---|"


def main() -> None:
    """Print the table."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most if most < FILES else FILES, most))
    with tempfile.TemporaryDirectory(prefix="podscaler-bench-") as folder, _sides(Path(folder)) as sides:
        uvloop.run(_compare(sides))


@contextlib.contextmanager
def _sides(folder: Path) -> Iterator[list[Side]]:
    """The servers, ours first, until the block ends."""
    programs = cluster_plane.programs()
    if programs is None:
        print("kube-apiserver and etcd are left out: `make assets` was not run.\n")
    servers: list[Ours | Real] = [Ours(folder)]
    if programs is not None:
        servers.append(Real(folder, programs))
    try:
        yield [server.start() for server in servers]
    finally:
        for server in servers:
            server.stop()


async def _compare(sides: list[Side]) -> None:
    for side in sides:
        await cases.create_namespaces(side)
        await cases.create(side, cases.NAMESPACE, cases.LISTED)
    print(HEAD, flush=True)
    for name, case in CASES:
        _show(name, sides, [await case(side) for side in sides])
    before = [side.rss_mib() for side in sides]
    created = [await cases.create(side, cases.CROWD, cases.MANY) for side in sides]
    _show("POST a pod", sides, created)
    print("\n| server | memory before | with 10,000 pods more | of these |\n|---|---|---|---|")
    for side, begun_mib in zip(sides, before, strict=True):
        now_mib = side.rss_mib()
        print(f"| {side.name} | {begun_mib:.0f} MiB | {now_mib:.0f} MiB | {now_mib - begun_mib:.0f} MiB |")


def _show(name: str, sides: list[Side], results: list[Result]) -> None:
    """One row for each server; ratios are of the last one."""
    for side, found in zip(sides, results, strict=True):
        ratio = f"{found.cpu_s / results[-1].cpu_s:.2f}" if results[-1].cpu_s else "-"
        figures = f"{found.rate:,.0f} | {found.p99_ms:.1f} ms | {found.cpu_s:.3f} | {ratio}"
        print(f"| {name} | {side.name} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
