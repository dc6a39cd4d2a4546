"""What tests need that a machine may lack, each with its remedy, which the end of a run prints for skipped tests.

A test is skipped by these alone, so that no reason lacks its remedy.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

import pytest

REMEDY = "; to run: "


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """Something that tests need.

    Attributes:
        lack: says that it is absent.
        remedy: what provides it.
    """

    lack: str
    remedy: str

    @property
    def reason(self) -> str:
        """Why a test is skipped."""
        return f"{self.lack}{REMEDY}{self.remedy}"

    def skip(self) -> NoReturn:
        """Skip the test that runs."""
        pytest.skip(self.reason)

    def mark(self, *, is_there: bool) -> pytest.MarkDecorator:
        """Skips the tests that bear it unless the prerequisite is there."""
        return pytest.mark.skipif(not is_there, reason=self.reason)


IS_CLOCK_SHIFTED = os.environ.get("SHIFTED_CLOCK_S", "0") != "0"
"""Whether this is a run of `make test-dates`."""

KUBECTL = (
    Prerequisite("kubectl is a Go program, which make test-dates gives no other date", "make test")
    if IS_CLOCK_SHIFTED
    else Prerequisite("no kubectl", "install it, or make assets (needs Go)")
)
ROOT = Prerequisite("only root may change users", "run the tests as root")
PRIVATE_MOUNTS = Prerequisite(
    "no private mounts",
    "run the tests as root with CAP_SYS_ADMIN (docker run --cap-add=SYS_ADMIN), or allow user namespaces",
)
NETWORK_NAMESPACES = Prerequisite(
    "no network namespaces for pods",
    "apt-get install iproute2, and run the tests as root with CAP_NET_ADMIN and CAP_SYS_ADMIN",
)
PROMETHEUS = Prerequisite("no prometheus", "apt-get install prometheus")
CHROMIUM = Prerequisite("no chromium", "apt-get install chromium")
PROMTOOL = Prerequisite("no promtool", "apt-get install prometheus")
REDIS = Prerequisite("no redis-server", "apt-get install redis-server")
POSTGRESQL = Prerequisite("no PostgreSQL server", "apt-get install postgresql")
RABBITMQ = Prerequisite("no rabbitmq-server", "apt-get install rabbitmq-server")
NATS = Prerequisite("no nats-server", "apt-get install nats-server")
KAFKA = Prerequisite("no Kafka", "make kafka (needs Maven and Java)")
PORT_53 = Prerequisite("names inside pods need private mounts and port 53", "run as root, with port 53 of 127/8 free")
LOW_PORTS = Prerequisite("every user may bind low ports", "sysctl net.ipv4.ip_unprivileged_port_start=1024")
PYTHON_OF_ALL = Prerequisite("no Python that other users may run", "install python3 outside /root")
PORT_TRANSLATION = Prerequisite(
    "the ports of pods cannot be translated", "run on Linux 5.9 or newer, without a seccomp filter that has a listener"
)
NAMES_AND_PORTS = Prerequisite(
    "names or ports of Services do not work inside pods", "allow user namespaces and seccomp listeners, or run as root"
)
ANOTHER_USER = Prerequisite("the tests run as an ordinary user already", "run them as root for both")
STATIC_C = Prerequisite("the C compiler makes no static programs", "apt-get install libc6-dev")
SMALL_DISK = Prerequisite("no tmpfs can be mounted", "run the tests as root with CAP_SYS_ADMIN")
PROC = Prerequisite("no /proc", "run the tests on Linux")
HADOLINT = Prerequisite("no hadolint", "make setup, on x86_64 (there is no package for other machines)")
CURL = Prerequisite("no curl", "apt-get install curl")
BASH = Prerequisite("no bash", "apt-get install bash")
C_COMPILER = Prerequisite("no C compiler", "apt-get install gcc libc6-dev")
OUR_CONTROLLER = Prerequisite("the built-in controller does not do that", "unset SCENARIOS_UPSTREAM")


def built_program(name: str) -> Prerequisite:
    """A real Kubernetes program, such as `helm`."""
    return Prerequisite(f"no {name}", "make assets (needs Go)")


ECOSYSTEM = Prerequisite("no programs of other projects", "make assets ecosystem (needs Go)")
REAL_PLANE = built_program("real control plane")


def summary(reasons: Iterable[str]) -> list[str]:
    """The lines that say what was skipped, most frequent first, and how to run it.

    Args:
        reasons: one for each skipped test, as pytest reports it; may be empty.
    """
    counts: dict[str, int] = {}
    for reason in reasons:
        counts[reason.removeprefix("Skipped: ")] = counts.get(reason.removeprefix("Skipped: "), 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [f"{count:5} {reason}" for reason, count in ordered]
