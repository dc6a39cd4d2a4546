"""Pods that the API server would not let through, given to the node all the same: it holds by itself.

Whatever their names, paths and texts are, nothing outside the pod's folder is made or changed, nothing is logged with a
traceback, and every container is in a state with a reason.
"""

import asyncio
import logging
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from podscaler.api.kinds import catalog
from podscaler.controlplane.kubelet.pods.pod_worker import PodWorker
from podscaler.controlplane.kubelet.probes import http_check
from podscaler.testing import VirtualClock
from podscaler.testing.containers import PlayedContainers
from podscaler.testing.registry import open_registry

OUTSIDE = "@outside@"
"""Stands for the path of a folder beside the node's, in which nothing may change."""
STORED = {"pods", "events", "configmaps", "secrets", "services", "namespaces"}
KINDS = [
    replace(r, strategy=replace(r.strategy, validate=lambda *_: [], validate_status=lambda *_: []))
    for r in catalog.RESOURCES
    if r.stored and r.plural in STORED
]
"""They take what the API server would refuse."""
HOSTILE = [
    "a",
    "",
    ".",
    "..",
    "../../../x",
    "a/../../x",
    f"{OUTSIDE}/made",
    f"../../../../..{OUTSIDE}/made",
    "link/made",
    "a\r\nHost: evil",
    "a\0b",
    "x" * 300,
    "d/" * 2500 + "x",
    "ü\u202e\U0001f600",
    "$(A)",
    "-rf",
    "%n %s {0}",
]

hostile = st.sampled_from(HOSTILE) | st.text(max_size=8)
names = st.just("c") | hostile
volume_names = st.sampled_from(["v", "w"]) | hostile


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


numbers = st.sampled_from([0, 1, 501, 65_534, 2**31 - 1])
items = st.lists(st.builds(lambda path: {"key": "k", "path": path}, hostile), max_size=2)
field = st.builds(lambda path: {"path": path, "fieldRef": {"fieldPath": "metadata.name"}}, hostile)
token = st.builds(lambda path: {"serviceAccountToken": {"path": path}}, hostile)
projected = st.lists(token | st.builds(lambda found: {"configMap": {"name": "cm", "items": found}}, items), max_size=2)
sources = st.one_of(
    st.just({"emptyDir": {}}),
    st.builds(lambda found: {"configMap": {"name": "cm", "items": found}}, items),
    st.builds(lambda found: {"downwardAPI": {"items": [found]}}, field),
    st.builds(lambda found: {"projected": {"sources": found}}, projected),
    st.builds(lambda path: {"hostPath": {"path": path, "type": "Directory"}}, hostile),
    st.builds(lambda name: {"secret": {"secretName": name}}, hostile),
)
volumes = st.lists(st.builds(lambda name, source: {"name": name, **source}, volume_names, sources), max_size=2)
mounts = st.lists(
    st.builds(
        lambda name, path, more: {"name": name, "mountPath": path, **more},
        volume_names,
        hostile,
        optional(subPath=hostile, subPathExpr=hostile),
    ),
    max_size=2,
)
containers = st.builds(
    lambda name, more: {"name": name, "image": "any", "command": ["/bin/app"], **more},
    names,
    optional(
        command=st.lists(hostile, min_size=1, max_size=2),
        image=hostile,
        workingDir=hostile,
        env=st.lists(st.builds(lambda name, value: {"name": name, "value": value}, hostile, hostile), max_size=2),
        volumeMounts=mounts,
        securityContext=optional(runAsUser=numbers, runAsGroup=numbers, runAsNonRoot=st.booleans()),
    ),
)
pods = st.builds(
    lambda container, more: {"nodeName": "node", "containers": [container], **more},
    containers,
    optional(
        volumes=volumes,
        hostname=hostile,
        subdomain=hostile,
        securityContext=optional(runAsUser=numbers, fsGroup=numbers, supplementalGroups=st.lists(numbers, max_size=2)),
        hostAliases=st.lists(st.builds(lambda ip, name: {"ip": ip, "hostnames": [name]}, hostile, hostile), max_size=1),
    ),
)


def mounting(path: str, **mount: Any) -> dict[str, Any]:
    """A pod that mounts a file with this path of a token, and a part of an emptyDir."""
    made = {"projected": {"sources": [{"serviceAccountToken": {"path": path}}]}}
    return {
        "nodeName": "node",
        "volumes": [{"name": "v", **made}, {"name": "w", "emptyDir": {}}],
        "containers": [
            {
                "name": "c",
                "image": "any",
                "command": ["/bin/app"],
                "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w", **mount}],
            }
        ],
    }


@settings(max_examples=60)
@given(pods)
@example(mounting("token", subPath="link/made/deep"))
@example(mounting("link/made"))
@example(mounting(f"{OUTSIDE}/made"))
@example({"nodeName": "node", "containers": [{"name": "../../../outside/c", "image": "any", "command": ["/bin/app"]}]})
def test_hostile_pods(spec: dict[str, Any]) -> None:
    """See the module."""
    with tempfile.TemporaryDirectory() as folder, tracebacks() as found:
        root = Path(folder).resolve()
        asyncio.run(_play(_placed(spec, str(root / "outside")), root))
    assert found == []


async def _play(spec: dict[str, Any], root: Path) -> None:
    for name in ("outside", "node"):
        (root / name).mkdir()
    (root / "outside" / "kept").write_text("kept")
    clock = VirtualClock()
    async with open_registry(root / "data", KINDS, clock) as opened:
        metadata = {"name": "web", "namespace": "default"}
        await opened.registry.create("configmaps", {"metadata": {**metadata, "name": "cm"}, "data": {"k": "1"}})
        pod = await opened.registry.create("pods", {"metadata": metadata, "spec": spec})
        stage = PlayedContainers(opened.registry, clock, root / "node")
        stage.host = replace(stage.host, issue_token=lambda *_: "token")
        own = root / "node" / "pods" / pod["metadata"]["uid"]
        for name in ("v", "w"):
            (own / "volumes" / name).mkdir(parents=True)
            (own / "volumes" / name / "link").symlink_to(root / "outside")
        before = contents(root, own)
        worker = PodWorker(stage.host, pod)
        task = asyncio.create_task(worker.run())
        await clock.advance(3)
        assert contents(root, own) == before
        statuses = opened.registry.get("pods", "default", "web")["status"]["containerStatuses"]
        states = [state for status in statuses for state in status["state"].items()]
        assert states
        assert all(kind == "running" or detail["reason"] for kind, detail in states), states
        worker.forget()
        await clock.advance(60)
        await task
        await stage.host.background.cancel_all()
        await stage.host.events.flush()


def contents(root: Path, own: Path) -> dict[str, bytes | None]:
    """Every file and folder but those of the pod and the store."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in sorted(root.rglob("*"))
        if not path.is_relative_to(own) and not path.is_relative_to(root / "data")
    }


def _placed(value: Any, outside: str) -> Any:
    """`value` with the real path in the place of OUTSIDE."""
    if isinstance(value, dict):
        return {key: _placed(inner, outside) for key, inner in value.items()}
    if isinstance(value, list):
        return [_placed(inner, outside) for inner in value]
    return value.replace(OUTSIDE, outside) if isinstance(value, str) else value


@contextmanager
def tracebacks() -> Iterator[list[str]]:
    """What is logged with a traceback meanwhile."""
    found: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info and record.exc_info[0] is not None:
                found.append(f"{record.getMessage()}: {record.exc_info[1]!r}")

    handler = Collector()
    logging.getLogger("podscaler").addHandler(handler)
    try:
        yield found
    finally:
        logging.getLogger("podscaler").removeHandler(handler)


TARGET = re.compile(r"/[\x21-\x7e]*")


@settings(max_examples=200)
@given(st.text(max_size=30) | hostile, hostile, hostile)
def test_hostile_requests_of_probes(path: str, name: str, value: str) -> None:
    """A request line has no blank, and a header that has a line break is refused before anything is sent."""
    action = {"path": path, "httpHeaders": [{"name": name, "value": value}]}
    made = http_check.make_request(action, "127.0.0.1", 80, user_agent="test")
    assert TARGET.fullmatch(made.target)
    assert made.url.host == "127.0.0.1"
    assert made.url.raw_path_qs == made.target
