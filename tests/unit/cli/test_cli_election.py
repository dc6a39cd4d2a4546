"""The flags of leader election and shards."""

import socket
from typing import Any

import click
import pytest
from click.testing import CliRunner

from podscaler.base.errors import UsageError
from podscaler.cli.options import election
from podscaler.controller.leaderelection.election import Election, Timing
from podscaler.controller.options import installation


def parsed(*arguments: str) -> Election | None:
    """What the flags mean, with an identity that is known."""
    found: list[Election | None] = []

    @click.command()
    @election.election_options
    def command(**options: Any) -> None:
        found.append(election.parse_election(options))

    CliRunner().invoke(command, arguments, catch_exceptions=False)
    return found[0]


def test_the_defaults_are_upstreams() -> None:
    """A leader is elected, by a Lease of our own."""
    found = parsed()
    assert found is not None
    assert found == Election(
        name="podscaler-controller",
        namespace="kube-system",
        timing=Timing(15, 10, 2),
        shards=0,
        identity=found.identity,
    )


@pytest.mark.parametrize("flag", ["--leader-elect=false", "--leader-elect=False", "--leader-elect=0"])
def test_without_an_election(flag: str) -> None:
    """It can be switched off, in the words that Go takes for false."""
    assert parsed(flag) is None


@pytest.mark.parametrize("flag", ["--leader-elect", "--leader-elect=true"])
def test_switched_on(flag: str) -> None:
    """With a value and without."""
    assert parsed(flag) is not None


def test_all_of_them() -> None:
    """Every flag has its effect."""
    found = parsed(
        "--leader-elect-lease-duration=60s",
        "--leader-elect-renew-deadline=1m",
        "--leader-elect-renew-deadline=40s",
        "--leader-elect-retry-period=500ms",
        "--leader-elect-resource-lock=leases",
        "--leader-elect-resource-name=mine",
        "--leader-elect-resource-namespace=scaling",
        "--shards=12",
    )
    assert found is not None
    assert found == Election("mine", "scaling", Timing(60, 40, 0.5), 12, found.identity)
    assert (found.shard_name(3), found.is_member(found.member_name)) == ("mine-shard-3", True)


def test_identities_differ() -> None:
    """Each process is somebody else: the host's name, and something random."""
    first, second = parsed(), parsed()
    assert first is not None
    assert second is not None
    assert first.identity != second.identity
    assert first.identity.rpartition("_")[0] == second.identity.rpartition("_")[0] != ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--leader-elect-resource-lock=endpoints"], '"--leader-elect-resource-lock" flag: must be "leases"'),
        (["--leader-elect-resource-name=Big_Name"], '"--leader-elect-resource-name" flag: '),
        (["--leader-elect-resource-namespace=a.b"], '"--leader-elect-resource-namespace" flag: '),
        (["--leader-elect-lease-duration=5s"], "--leader-elect-lease-duration must be greater than"),
        (["--leader-elect-retry-period=9s"], "--leader-elect-renew-deadline must be greater than 1.2 times"),
        (["--shards=-1"], "--shards must be from 0 to 256, but got -1"),
        (["--shards=257"], "--shards must be from 0 to 256, but got 257"),
        (["--shards=2", "--leader-elect=false"], "--shards needs leases, which --leader-elect=false does without"),
    ],
)
def test_what_cannot_be(arguments: list[str], sentence: str) -> None:
    """One sentence that names the flag."""
    with pytest.raises(UsageError) as caught:
        parsed(*arguments)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "manager"),
    [
        ([], "podscaler"),
        (["--shards=4"], "podscaler"),
        (["--leader-elect-resource-namespace=scaling"], installation.of_lease("scaling", "podscaler-controller")),
        (["--leader-elect-resource-name=mine"], installation.of_lease("kube-system", "mine")),
        (["--leader-elect=false"], installation.of_host(socket.gethostname())),
    ],
)
def test_the_field_manager(arguments: list[str], manager: str) -> None:
    """The Lease names the installation under which a controller writes; without one, its host does."""
    assert election.field_manager(parsed(*arguments)) == manager
