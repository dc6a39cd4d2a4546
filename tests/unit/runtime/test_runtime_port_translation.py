"""Ports below the machine's limit, translated in the calls of pods: the rules, then real processes."""

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import prerequisites
from patience import WITHIN_S
from podscaler.controlplane.kubelet.launching import capabilities, container_config, port_translation, seccomp
from podscaler.controlplane.kubelet.launching.container_config import ContainerConfig
from podscaler.controlplane.kubelet.launching.port_translation import PortTranslator
from podscaler.controlplane.kubelet.processes import processes
from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.streams import ChildStreams
from podscaler.controlplane.network.addresses import AddressBlock

POD = "127.9.1.1"
SERVICE = "127.9.224.2"


def service(address: str = SERVICE, **annotations: str) -> dict[str, Any]:
    """A Service at `address` with a note of where its ports are."""
    notes = {f"podscaler.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return {"metadata": {"namespace": "shop", "name": "web", "annotations": notes}, "spec": {"clusterIP": address}}


@pytest.fixture
def translator() -> PortTranslator:
    """A translator of 127.9.0.0/16 and ports below 1024, with one Service whose port 80 is at 21080."""
    made = PortTranslator(AddressBlock(9), unprivileged_port_start=1024)
    made.update_service(service(port_map='{"80": 21080}'), is_gone=False)
    return made


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        pytest.param((SERVICE, 80), (SERVICE, 21080), id="a Service's moved port"),
        pytest.param((SERVICE, 81), (SERVICE, 81), id="a port that the Service does not have"),
        pytest.param((POD, 1), (POD, 20001), id="the lowest port of a pod"),
        pytest.param((POD, 1023), (POD, 21023), id="the highest port below the limit"),
        pytest.param((POD, 1024), (POD, 1024), id="the limit itself"),
        pytest.param((POD, 0), (POD, 0), id="no port"),
        pytest.param(("127.0.0.1", 80), ("127.0.0.1", 80), id="the machine itself"),
        pytest.param(("127.10.1.1", 80), ("127.10.1.1", 80), id="the block of another `up`"),
        pytest.param(("192.0.2.1", 80), ("192.0.2.1", 80), id="another machine"),
    ],
)
def test_where_connections_go(translator: PortTranslator, address: tuple[str, int], expected: tuple[str, int]) -> None:
    """Low ports of Services lead to where the proxy listens, those of pods to port + 20000; no others are touched."""
    assert translator.connect_address(address) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        pytest.param((POD, 80), (POD, 20080), id="the pod's own address"),
        pytest.param(("0.0.0.0", 80), (POD, 20080), id="all addresses"),
        pytest.param(("0.0.0.0", 8080), ("0.0.0.0", 8080), id="a high port of all addresses"),
        pytest.param((POD, 0), (POD, 0), id="any port"),
        pytest.param(("127.0.0.1", 80), ("127.0.0.1", 80), id="the machine's address"),
        pytest.param(("127.9.1.2", 80), ("127.9.1.2", 80), id="another pod's address"),
    ],
)
def test_where_pods_listen(translator: PortTranslator, address: tuple[str, int], expected: tuple[str, int]) -> None:
    """A low port of the pod's own address, or of all, is bound at port + 20000 of the pod's own address."""
    assert translator.bind_address(address, POD) == expected


def test_services_that_go_are_forgotten(translator: PortTranslator) -> None:
    """The address may belong to nobody; a headless Service and one without a note change nothing."""
    translator.update_service(service(), is_gone=True)
    translator.update_service(service("None"), is_gone=False)
    assert translator.connect_address((SERVICE, 80)) == (SERVICE, 20080)
    translator.update_service(service(), is_gone=False)
    assert translator.connect_address((SERVICE, 80)) == (SERVICE, 80)


def test_an_address_that_a_service_loses(translator: PortTranslator) -> None:
    """A Service that becomes an ExternalName leaves no ports at the address that it had."""
    external = {"metadata": {"namespace": "shop", "name": "web"}, "spec": {"type": "ExternalName"}}
    translator.update_service(external, is_gone=False)
    assert translator.connect_address((SERVICE, 80)) == (SERVICE, 20080)


V4 = struct.pack("=H", socket.AF_INET) + struct.pack("!H", 80) + bytes([127, 9, 1, 1]) + bytes(8)
MAPPED = socket.inet_pton(socket.AF_INET6, "::ffff:127.9.1.1")
V6 = struct.pack("=H", socket.AF_INET6) + struct.pack("!H", 80) + bytes(4)


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        pytest.param(V4, (POD, 80), id="IPv4"),
        pytest.param(V4[:8], (POD, 80), id="IPv4 without its padding"),
        pytest.param(V4[:7], None, id="IPv4, too short"),
        pytest.param(V6 + MAPPED + bytes(4), (POD, 80), id="IPv4 in IPv6"),
        pytest.param(V6 + bytes(16), ("0.0.0.0", 80), id="all addresses of both families"),
        pytest.param(V6 + bytes(15) + b"\1", None, id="another IPv6 address"),
        pytest.param(V6 + MAPPED[:-1], None, id="IPv6, too short"),
        pytest.param(struct.pack("=H", socket.AF_UNIX) + b"/run/socket\0", None, id="a Unix socket"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_reading_socket_addresses(memory: bytes, expected: tuple[str, int] | None) -> None:
    """IPv4 addresses and ports are read from either family; everything else is none of ours."""
    assert port_translation.read_address(memory) == expected


@pytest.mark.parametrize("memory", [V4, V6 + MAPPED + bytes(4), V6 + bytes(16)])
def test_writing_socket_addresses(memory: bytes) -> None:
    """The new address is read again, and the size stays."""
    changed = port_translation.with_address(memory, ("127.9.1.2", 20080))
    assert (port_translation.read_address(changed), len(changed)) == (("127.9.1.2", 20080), len(memory))


# --- real processes ---------------------------------------------------------------------------------------------------


@pytest.fixture
def threads() -> Iterator[ThreadPool]:
    """ThreadPool to start processes in."""
    made = ThreadPool()
    yield made
    made.close()


class Trapped:
    """Runs Python programs whose calls are translated, at addresses of a block that tests alone use."""

    def __init__(self, threads: ThreadPool, folder: Path) -> None:
        self.translator = PortTranslator(AddressBlock(255), unprivileged_port_start=1024)
        self.bound: list[dict[int, int]] = []
        self._threads = threads
        self._folder = folder

    async def run(self, program: str) -> tuple[int, str]:
        """The exit status and the output of `program`."""
        trap = self.translator.trap("127.255.1.1", lambda bound: self.bound.append(dict(bound)))
        argv = (sys.executable, "-I", "-S", "-c", program)
        launch = ContainerConfig(argv=argv, env={}, cwd="/", port_trap=trap)
        output = self._folder / "output"
        with output.open("wb") as file:
            process = await processes.start(
                container_config.process_spec(launch),
                self._threads,
                ChildStreams(stdout=file.fileno(), stderr=file.fileno()),
            )
        async with asyncio.timeout(WITHIN_S):
            return await process.exited, output.read_text()


@pytest.fixture
async def trapped(threads: ThreadPool, tmp_path: Path) -> Trapped:
    """See the class; skips the test where the machine does not allow it, which `up` finds out the same way."""
    if capabilities.port_translation_error():
        prerequisites.PORT_TRANSLATION.skip()
    return Trapped(threads, tmp_path)


LISTENS = """
import os, socket
server = socket.create_server(("127.255.1.1", 80))
if os.fork() == 0:
    server.close()
    client = socket.create_connection(("127.255.1.1", 80))
    print(client.recv(99).decode(), client.getpeername(), flush=True)
    os._exit(0)
server.accept()[0].sendall(b"hello")
os.wait()
"""


async def test_a_program_and_its_children_meet_at_a_low_port(trapped: Trapped) -> None:
    """What one binds the other connects to, both by the number of the manifest; who asks is told the real one."""
    assert await trapped.run(LISTENS) == (0, "hello ('127.255.1.1', 20080)\n")
    assert trapped.bound == [{80: 20080}]


BOTH_FAMILIES = """
import socket
server = socket.create_server(("", 81), family=socket.AF_INET6, dualstack_ipv6=True)
print(server.getsockname()[:2])
"""


async def test_both_families(trapped: Trapped) -> None:
    """A program that listens on all addresses of both families gets the pod's own."""
    assert await trapped.run(BOTH_FAMILIES) == (0, "('::ffff:127.255.1.1', 20081)\n")


UNTOUCHED = """
import ctypes, errno, os, socket, threading
ours, theirs = socket.socketpair()
unix = socket.socket(socket.AF_UNIX)
unix.bind("\\0podscaler-test-%d" % os.getpid())
high = socket.create_server(("127.255.1.1", 0))
socket.create_connection(high.getsockname()).close()
libc = ctypes.CDLL(None, use_errno=True)
print(libc.connect(high.fileno(), ctypes.c_void_p(1), 16), errno.errorcode[ctypes.get_errno()])
print(libc.connect(high.fileno(), ctypes.c_void_p(2**64 - 4096), 16), errno.errorcode[ctypes.get_errno()])
"""


async def test_other_calls_are_as_they_are_everywhere(trapped: Trapped) -> None:
    """Unix sockets and high ports work, and an address that is no memory is refused as the kernel does."""
    assert await trapped.run(UNTOUCHED) == (0, "-1 EFAULT\n-1 EFAULT\n")
    assert trapped.bound == []


async def test_a_process_that_dies_in_its_call_harms_nobody(trapped: Trapped) -> None:
    """Its siblings' calls go on being answered."""
    program = """
import os, signal, socket
for _ in range(20):
    child = os.fork()
    if child == 0:
        while True:
            socket.socket().connect_ex(("127.255.1.1", 82))
    os.kill(child, signal.SIGKILL)
    os.wait()
print(socket.socket().connect_ex(("127.255.1.1", 82)))
"""
    code, output = await trapped.run(program)
    assert (code, output.strip()) == (0, "111")


async def test_listeners_are_closed_with_their_processes(trapped: Trapped) -> None:
    """No descriptor is left once no process has the filter."""
    before = len(os.listdir("/proc/self/fd"))
    await trapped.run("pass")
    async with asyncio.timeout(WITHIN_S):
        while len(os.listdir("/proc/self/fd")) > before:  # noqa: ASYNC110  the kernel tells the event loop alone
            await asyncio.sleep(0)


async def test_closing_lets_go_of_all_listeners(trapped: Trapped, threads: ThreadPool) -> None:
    """Also those of processes that live."""
    before = len(os.listdir("/proc/self/fd"))
    trap = trapped.translator.trap("127.255.1.1", lambda _: None)
    lasting = ContainerConfig(argv=(sys.executable, "-c", "input()"), env={}, cwd="/", port_trap=trap)
    reader, writer = os.pipe()
    spec = container_config.process_spec(lasting)
    process = await processes.start(spec, threads, ChildStreams(reader, writer, writer))
    trapped.translator.close()
    process.signal_group(signal.SIGKILL)
    await process.exited
    os.close(reader)
    os.close(writer)
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_filter_traps_two_calls(tmp_path: Path) -> None:
    """A filter of seven instructions of eight bytes each, on the architectures that are known."""
    plan = seccomp.filter_plan()
    if plan is None:
        prerequisites.PORT_TRANSLATION.skip()
    assert len(bytes.fromhex(plan["filter"])) == 7 * 8


HAS_A_LISTENER = """
import os, socket, sys
from podscaler.controlplane.kubelet.launching import capabilities, launcher, seccomp
plan = seccomp.filter_plan()
code = bytes.fromhex(plan["filter"])
ours, theirs = socket.socketpair()
launcher.install_trap(plan | {"filter": (code[:-8] + code[-16:-8]).hex()}, theirs.detach())
print(capabilities.port_translation_error())
"""


def test_a_machine_without_translation_is_found_out(tmp_path: Path) -> None:
    """Where the filter cannot be installed, as `up` has one with a listener itself, the cause is told."""
    if capabilities.port_translation_error():
        prerequisites.PORT_TRANSLATION.skip()
    done = subprocess.run([sys.executable, "-c", HAS_A_LISTENER], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (
        "installing the filter that translates ports: Device or resource busy\n",
        "",
    )
