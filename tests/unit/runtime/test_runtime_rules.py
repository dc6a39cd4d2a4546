"""Small decisions of the node: ports, users, deadlines, diagnoses, binding, limits."""

from pathlib import Path
from typing import Any

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane import scheduler
from podscaler.controlplane.kubelet.containers import container_process, pod_termination
from podscaler.controlplane.kubelet.launching import container_ports
from podscaler.controlplane.kubelet.launching.capabilities import Capabilities
from podscaler.controlplane.kubelet.launching.container_config import ContainerUser
from podscaler.controlplane.kubelet.launching.container_ports import PortPlan
from podscaler.controlplane.kubelet.launching.images import ImageCommand
from podscaler.controlplane.kubelet.pods import container_setup
from podscaler.controlplane.kubelet.processes import cgroups
from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError

S = NANOSECONDS
WEB = ImageCommand(("/bin/web",), default_port=80)


@pytest.mark.parametrize(
    ("container", "image", "expected"),
    [
        pytest.param({}, WEB, PortPlan(20080, {80: 20080}), id="the image's low port is mapped"),
        pytest.param({"ports": [{"containerPort": 8080}]}, WEB, PortPlan(8080), id="a declared high port is told"),
        pytest.param({"ports": [{"containerPort": 443}]}, WEB, PortPlan(20443, {443: 20443}), id="a declared low port"),
        pytest.param({"command": ["x"]}, WEB, PortPlan(), id="a command of its own binds what it wants"),
        pytest.param({"env": [{"name": "PORT", "value": "81"}]}, WEB, PortPlan(), id="PORT of its own"),
        pytest.param({}, None, PortPlan(), id="an unknown image"),
        pytest.param({}, ImageCommand(("/bin/pause",)), PortPlan(), id="an image without a port"),
    ],
)
def test_ports_of_an_ordinary_user(container: dict[str, Any], image: ImageCommand | None, expected: PortPlan) -> None:
    """A built-in image is told a port that it may bind."""
    assert container_ports.port_plan(container, image, lowest_port=1024) == expected


def test_root_binds_low_ports() -> None:
    """Nothing is mapped where every port may be bound."""
    assert container_ports.port_plan({}, WEB, lowest_port=1) == PortPlan(80)


@pytest.mark.parametrize(
    ("container", "image", "expected"),
    [
        pytest.param({}, WEB, PortPlan(80, {80: 20080}), id="a built-in image is told its own port"),
        pytest.param({"ports": [{"containerPort": 443}]}, WEB, PortPlan(443, {443: 20443}), id="a declared low port"),
        pytest.param({"ports": [{"containerPort": 8080}]}, WEB, PortPlan(8080), id="a high port stays"),
        pytest.param(
            {"command": ["x"], "ports": [{"containerPort": 81}, {"containerPort": 8081}]},
            None,
            PortPlan(None, {81: 20081}),
            id="declared low ports of any program are mapped",
        ),
    ],
)
def test_ports_where_calls_are_translated(
    container: dict[str, Any], image: ImageCommand | None, expected: PortPlan
) -> None:
    """Programs name the ports of their manifests, and the map says where those really are."""
    assert container_ports.port_plan(container, image, lowest_port=1024, translated=True) == expected


def test_the_port_map_of_a_pod() -> None:
    """The mapped ports of all containers."""
    plans = [PortPlan(20443, {443: 20443}), PortPlan(20080, {80: 20080}), PortPlan(8080)]
    assert container_ports.mapped_ports(plans) == {443: 20443, 80: 20080}


@pytest.mark.parametrize(
    ("root", "bind", "user", "lowest"),
    [
        (True, True, None, 1),
        (True, True, 0, 1),
        (True, True, 1000, 1024),
        (False, False, None, 1024),
        (True, False, 0, 1024),
    ],
)
def test_the_lowest_port(root: bool, bind: bool, user: int | None, lowest: int) -> None:
    """A container that runs as somebody else has that user's rights, not ours."""
    found = Capabilities(user=0 if root else 501, may_change_user=root, may_bind_low_ports=bind)
    assert found.lowest_port(user) == lowest


@pytest.mark.parametrize(
    ("container", "image", "expected"),
    [
        ({"command": ["a", "$(B)"], "args": ["$(B)"]}, WEB, ("a", "1", "1")),
        ({"args": ["$(B)"]}, WEB, ("/bin/web", "1")),
        ({}, WEB, ("/bin/web",)),
        ({"args": ["a"]}, ImageCommand(("/bin/sh",), args_replace=True), ("a",)),
        ({}, ImageCommand(("/bin/sh",), args_replace=True), ("/bin/sh",)),
    ],
)
def test_command_lines(container: dict[str, Any], image: ImageCommand, expected: tuple[str, ...]) -> None:
    """command replaces all of the image's, args what an image without an entry point would run."""
    assert container_setup.argv(container, image, {"B": "1"}) == expected


def ids(
    pod: dict[str, Any], container: dict[str, Any], *, user: int = 0, may_change: bool = True
) -> ContainerUser | None:
    spec = {"spec": {"securityContext": pod}}
    return container_setup.container_user(
        spec, {"name": "c", "securityContext": container}, up_uid=user, may_change_user=may_change
    )


@pytest.mark.parametrize(
    ("pod", "container", "expected"),
    [
        ({}, {}, None),
        ({"runAsUser": 0}, {}, None),
        ({"runAsUser": 4321}, {}, ContainerUser(4321, 4321)),
        ({"runAsUser": 4321}, {"runAsUser": 4322}, ContainerUser(4322, 4322)),
        ({"runAsUser": 4321, "runAsGroup": 7}, {}, ContainerUser(4321, 7)),
        ({"fsGroup": 9, "supplementalGroups": [8], "runAsUser": 4321}, {}, ContainerUser(4321, 4321, (8, 9))),
        ({"runAsGroup": 7}, {}, ContainerUser(0, 7)),
        ({"runAsNonRoot": True}, {}, ContainerUser(65532, 65532)),
        ({"runAsNonRoot": True, "runAsGroup": 7}, {}, ContainerUser(65532, 7)),
        ({"runAsNonRoot": True, "runAsUser": 4321}, {}, ContainerUser(4321, 4321)),
    ],
)
def test_users(pod: dict[str, Any], container: dict[str, Any], expected: ContainerUser | None) -> None:
    """The container's securityContext wins over the pod's; without one nothing changes."""
    assert ids(pod, container) == expected


@pytest.mark.parametrize(
    ("pod", "user", "message"),
    [
        ({"runAsUser": 1}, 501, "runAsUser 1 is not possible here: `podscaler up` runs as user 501"),
        ({"runAsGroup": 1}, 501, "runAsGroup 1 is not possible here"),
        ({"runAsNonRoot": True, "runAsUser": 0}, 0, 'container "c" has runAsNonRoot and would run as root'),
    ],
)
def test_users_that_cannot_be(pod: dict[str, Any], user: int, message: str) -> None:
    """What the machine does not allow is refused with the reason."""
    with pytest.raises(ContainerConfigError) as caught:
        ids(pod, {}, user=user, may_change=user == 0)
    assert caught.value.message.startswith(message)


def test_a_later_deletion_only_shortens() -> None:
    """30 s, then 5 s three seconds later, then 60 s: the deadline comes nearer and stays."""
    first = pod_termination.terminate(None, 30, now_ns=0)
    second = pod_termination.terminate(first, 5, now_ns=3 * S)
    third = pod_termination.terminate(second, 60, now_ns=4 * S)
    assert [each.deadline_ns // S for each in (first, second, third)] == [30, 8, 8]


def test_the_active_deadline_counts_from_the_start() -> None:
    """activeDeadlineSeconds after status.startTime, or after the node first saw the pod."""
    pod = {"spec": {"activeDeadlineSeconds": 5}, "status": {"startTime": "1970-01-01T00:00:10Z"}}
    assert pod_termination.active_deadline_ns(pod, started_ns=0) == 15 * S
    assert pod_termination.active_deadline_ns({"spec": {"activeDeadlineSeconds": 5}}, started_ns=S) == 6 * S
    assert pod_termination.active_deadline_ns({"spec": {}}, started_ns=S) is None


@pytest.mark.parametrize(
    ("said", "part"),
    [
        (b"OSError: [Errno 98] Address already in use", "$POD_IP (127.2.1.1)"),
        (b"Error: listen EADDRINUSE: address already in use :::3000", "$POD_IP (127.2.1.1)"),
        (b"bind() to 0.0.0.0:80 failed (13: Permission denied)", "Ports below 1024"),
        (b"Error: listen EACCES: permission denied 0.0.0.0:80", "Ports below 1024"),
        (b"/bin/sh: ./run.sh: Permission denied", ""),
        (b"Traceback: KeyError", ""),
        (b"", ""),
    ],
)
def test_diagnoses(said: bytes, part: str) -> None:
    """An address in use and a port that may not be bound are told apart from everything else."""
    found = container_process.bind_error(said, pod_ip="127.2.1.1", unprivileged_port_start=1024)
    assert part in found
    assert bool(found) is bool(part)


def test_a_declared_low_port_makes_any_refusal_suspect() -> None:
    """A traceback without the word bind is enough where the container says that it wants port 80."""
    said = b"PermissionError: [Errno 13] Permission denied"
    found = [
        container_process.bind_error(said, pod_ip="127.2.1.1", unprivileged_port_start=1024, forbidden_ports=ports)[:3]
        for ports in ([], [80])
    ]
    assert found == ["", "its"]


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": spec}


@pytest.mark.parametrize(
    ("found", "unwanted"),
    [
        (pod(), False),
        (pod(nodeName="n"), True),
        (pod(schedulerName="mine"), True),
        (pod(schedulerName="default-scheduler"), False),
        (pod(schedulingGates=[{"name": "g"}]), True),
        ({"metadata": {"deletionTimestamp": "x"}, "spec": {}}, True),
    ],
)
def test_pods_to_bind(found: dict[str, Any], unwanted: bool) -> None:
    """Bound, gated and deleted pods and those of another scheduler are left alone."""
    assert scheduler.is_skipped(found) is unwanted


def test_pods_that_do_not_fit() -> None:
    """A cordoned node and a foreign node selector, in the scheduler's words."""
    node = {"metadata": {"labels": {"disk": "ssd"}}}
    assert [
        scheduler.node_mismatch(pod(), node),
        scheduler.node_mismatch(pod(nodeSelector={"disk": "ssd"}), node),
        scheduler.node_mismatch(pod(nodeSelector={"disk": "hdd"}), node),
        scheduler.node_mismatch(pod(), {**node, "spec": {"unschedulable": True}}),
    ] == [
        "",
        "",
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
        "0/1 nodes are available: 1 node(s) were unschedulable.",
    ]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, {}),
        ({"limits": {"cpu": "500m"}}, {"cpu.max": "50000 100000", "cpu.weight": "50"}),
        ({"limits": {"cpu": "1m"}}, {"cpu.max": "1000 100000", "cpu.weight": "1"}),
        ({"limits": {"memory": "64Mi"}}, {"memory.max": "67108864"}),
        (
            {"limits": {"cpu": "2", "memory": "1G"}, "requests": {"cpu": "100m"}},
            {"cpu.max": "200000 100000", "memory.max": "1000000000", "cpu.weight": "10"},
        ),
    ],
)
def test_limits_as_cgroup_files(resources: dict[str, Any], expected: dict[str, str]) -> None:
    """cpu.max from the limit, cpu.weight from the request, memory.max in bytes."""
    assert cgroups.limits(resources) == expected


def hierarchy(root: Path, *, controllers: str = "cpu memory pids", inhabitants: str = "") -> Path:
    own = root / "session"
    own.mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpu memory")
    (own / "cgroup.controllers").write_text(controllers)
    (own / "cgroup.subtree_control").write_text("")
    (own / "cgroup.procs").write_text(inhabitants)
    listing = root / "self"
    listing.write_text("0::/session\n")
    return listing


def test_a_delegated_cgroup_is_used(tmp_path: Path) -> None:
    """Controllers are handed on and each container gets a folder with its limits (on a played hierarchy)."""
    found = cgroups.set_up(root=tmp_path, own_cgroup_file=hierarchy(tmp_path))
    assert isinstance(found, cgroups.Cgroups)
    folder = found.make("c1", {"limits": {"memory": "1Mi"}})
    assert (folder / "memory.max").read_text() == "1048576"
    assert (tmp_path / "session" / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    (folder / "memory.events").write_text("low 0\noom_kill 1\n")
    assert found.remove("c1") is True


@pytest.mark.parametrize(
    ("played", "message"),
    [
        ({"controllers": "pids"}, "the cgroup of `up` has no cpu and memory controller"),
        ({"inhabitants": "1\n2\n"}, "other processes live in the cgroup of `up`"),
    ],
)
def test_a_cgroup_that_cannot_be_used(tmp_path: Path, played: dict[str, str], message: str) -> None:
    """Without a part of the hierarchy of its own the node says why limits are not enforced."""
    assert cgroups.set_up(root=tmp_path, own_cgroup_file=hierarchy(tmp_path, **played)) == message
