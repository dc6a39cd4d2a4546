"""How many processes containers may have, and what the Node says about it."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import prerequisites
from podscaler.controlplane.kubelet import node
from podscaler.controlplane.kubelet.launching import container_config
from podscaler.controlplane.kubelet.launching.capabilities import Capabilities
from podscaler.controlplane.kubelet.launching.container_config import ContainerConfig, ContainerUser
from podscaler.controlplane.kubelet.launching.process_limits import ProcessLimits
from podscaler.controlplane.kubelet.node import MachineInfo, NodeObject
from podscaler.controlplane.kubelet.processes import cgroups, processes
from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.settings import KubeletSettings
from podscaler.controlplane.kubelet.processes.streams import ChildStreams
from podscaler.testing import VirtualClock
from podscaler.testing.registry import OpenRegistry

INFO = {"operatingSystem": "linux", "architecture": "amd64", "kubeletVersion": "v1.37.0"}
AS_ROOT = ProcessLimits(user=0, machine_max=1000, own_max=500)
AS_USER = ProcessLimits(user=501, machine_max=1000, own_max=400)


@pytest.fixture
async def threads() -> AsyncIterator[ThreadPool]:
    found = ThreadPool()
    yield found
    found.close()


@pytest.mark.parametrize(
    ("limits", "user", "expected"),
    [
        pytest.param(AS_ROOT, None, None, id="root is bound by nothing"),
        pytest.param(AS_ROOT, 0, None, id="nor is a container that asks for root"),
        pytest.param(AS_ROOT, 1000, 250, id="another user has a quarter of the machine"),
        pytest.param(AS_USER, None, 300, id="the user of up leaves a quarter of what it may have to itself"),
        pytest.param(AS_USER, 501, 300, id="also where it is named"),
        pytest.param(
            replace(AS_USER, own_max=0), None, 750, id="a user without a limit leaves a quarter of the machine"
        ),
        pytest.param(replace(AS_USER, own_max=1), None, 1, id="at least one"),
        pytest.param(ProcessLimits(user=501), None, None, id="a machine that does not say"),
    ],
)
def test_limits_of_users(limits: ProcessLimits, user: int | None, expected: int | None) -> None:
    """RLIMIT_NPROC of a container."""
    assert limits.limit_of_user(user) == expected


@pytest.mark.parametrize(
    ("limits", "cgroup_error", "fault"),
    [
        (AS_ROOT, "", ""),
        (AS_USER, "no cgroups", ""),
        (AS_ROOT, "no cgroups", "the processes of containers that run as root are not limited: no cgroups"),
        (
            ProcessLimits(user=501),
            "no cgroups",
            "how many processes this machine can have is not known, and no pod is limited",
        ),
    ],
)
def test_what_is_not_limited(limits: ProcessLimits, cgroup_error: str, fault: str) -> None:
    """The Node says whose processes nothing limits."""
    assert limits.limitation(cgroup_error) == fault


def conditions(opened: OpenRegistry) -> dict[str, tuple[str, str, str]]:
    found = opened.registry.get("nodes", "", "vm")["status"]["conditions"]
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in found}


async def test_conditions_about_processes(opened: OpenRegistry, clock: VirtualClock, tmp_path: Path) -> None:
    """PIDPressure is measured at every heartbeat, and does not hide that pods could take all there are."""
    await opened.registry.create("namespaces", {"metadata": {"name": "kube-node-lease"}})
    in_use = [10]
    machine = MachineInfo("vm", "127.7.0.1", "127.7.0.0/16", {}, INFO, {node.PROCESS_LIMITS: "no cgroups"}, AS_ROOT)
    settings = KubeletSettings(tmp_path)
    found = NodeObject(opened.registry, clock, settings, machine, count_processes=lambda: in_use[0])
    await found.register()
    assert conditions(opened)["ProcessLimitsEnforced"] == ("False", "NotPossible", "no cgroups")
    sufficient = ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available; no cgroups")
    assert conditions(opened)["PIDPressure"] == sufficient
    task = asyncio.create_task(found.heartbeat())
    in_use[0] = 901
    await clock.advance(10)
    insufficient = ("True", "KubeletHasInsufficientPID", "kubelet has insufficient PID available")
    assert conditions(opened)["PIDPressure"] == insufficient
    in_use[0] = 900
    await clock.advance(10)
    assert conditions(opened)["PIDPressure"] == sufficient
    task.cancel()


async def test_containers_are_limited(played: Any, container: Any) -> None:
    """Each container's launch has the limit of its user."""
    capabilities = Capabilities(501, may_change_user=False, may_bind_low_ports=False, process_limits=AS_USER)
    played.stage.host = replace(played.stage.host, capabilities=capabilities)
    await played.begin(containers=[container()])
    assert played.stage.launches["c"].max_processes == 300


@prerequisites.ROOT.mark(is_there=os.geteuid() == 0)
async def test_the_limit_holds(threads: ThreadPool) -> None:
    """A container of a user of its own cannot start more processes than it may have; its commands cannot either."""
    many = ("/bin/sh", "-c", "sleep 1000 & sleep 1000 & sleep 1000 & sleep 1000 & wait")
    env = {"PATH": "/usr/bin:/bin"}
    wanted = ContainerConfig(argv=many, env=env, cwd="/", user=ContainerUser(54_321, 54_321), max_processes=3)
    for spec in (container_config.process_spec(wanted), container_config.exec_spec(wanted, many, pid=1)):
        reader, writer = os.pipe()
        process = await processes.start(spec, threads, ChildStreams(stdout=subprocess.DEVNULL, stderr=writer))
        os.close(writer)
        assert await process.exited == 2
        assert b"fork" in os.read(reader, 1000)
        os.close(reader)


def test_a_container_of_a_cgroup_is_limited(tmp_path: Path) -> None:
    """Where the pids controller is handed on, also root's containers are limited."""
    cgroups.Cgroups(tmp_path).make("c1", {}, pids_max=AS_ROOT.limit_of_container())
    cgroups.Cgroups(tmp_path, "no pids controller").make("c2", {}, pids_max=250)
    assert ((tmp_path / "c1" / "pids.max").read_text(), list((tmp_path / "c2").iterdir())) == ("250", [])
