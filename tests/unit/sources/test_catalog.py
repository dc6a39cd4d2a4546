"""Factories of sources: the built-in systems, those of other distributions, and clients that are not installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from podscaler.api.kinds.autoscaling import metric_source_schema
from podscaler.kube.client.client import Client
from podscaler.sources import source_types
from podscaler.sources.open_sources import OpenSources
from podscaler.sources.protocol import ClientMissing
from podscaler.testing import VirtualClock
from podscaler.testing.sources import metric_source
from podscaler.testing.transport import ScriptedTransport

THIRD_PARTY = """
class Source:
    query = "the answer"

    def __init__(self, config):
        self._settings = config.settings

    async def read(self):
        return self._settings["number"]

    async def close(self):
        pass
"""


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution with a source of its own, and one whose module lacks something."""
    (tmp_path / "answers_of_example.py").write_text(THIRD_PARTY)
    info = tmp_path / "answers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: answers\nVersion: 1.0\n")
    entries = ["answers = answers_of_example:Source", "broken = answers_of_example:Other", "redis = nothing:Redis"]
    (info / "entry_points.txt").write_text("\n".join([f"[{source_types.GROUP}]", *entries]) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_each_section_of_the_spec_has_a_system() -> None:
    """All but `custom`."""
    assert {*source_types.BUILT_IN, "custom"} == set(metric_source_schema.SYSTEM_TYPES)


@pytest.mark.parametrize("name", source_types.BUILT_IN)
def test_the_built_in_systems_are_there(name: str) -> None:
    """Each factory is a class of its module."""
    assert source_types.find_factory(name, False).__name__.lower() == f"{name}source"


@pytest.mark.usefixtures("distribution")
async def test_a_source_of_another_distribution() -> None:
    """A MetricSource of type custom is read by the entry point that it names."""
    clock = VirtualClock()
    sources = OpenSources(Client(ScriptedTransport(), clock), clock)
    result = await sources.read(metric_source(custom={"type": "answers", "settings": {"number": 42}}))
    assert (result.query, result.value_milli, result.error) == ("the answer", 42_000, None)


@pytest.mark.usefixtures("distribution")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("questions", "no installed distribution has an entry point questions in the group podscaler.metric_sources"),
        ("broken", "the entry point answers_of_example:Other cannot be imported: "),
    ],
)
def test_entry_points_that_cannot_be_used(name: str, text: str) -> None:
    """The failure says what is wrong with the installation."""
    with pytest.raises(ClientMissing) as caught:
        source_types.find_factory(name, True)
    assert str(caught.value).startswith(text)


@pytest.mark.usefixtures("distribution")
def test_a_built_in_system_is_not_replaced() -> None:
    """A distribution with the same name is only for `custom`."""
    assert source_types.find_factory("redis", False).__module__ == "podscaler.sources.systems.redis"


def test_a_client_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure names the command that installs it."""
    monkeypatch.setitem(sys.modules, "nats.aio.client", None)
    monkeypatch.delitem(sys.modules, "podscaler.sources.systems.nats", raising=False)
    with pytest.raises(ClientMissing) as caught:
        source_types.find_factory("nats", False)
    assert str(caught.value) == "the Python client of nats is not installed: pip install 'podscaler[sources]'"


CLIENTS = {"redis", "psycopg", "aio_pika", "nats", "aiokafka", "cronsim", "jsonpath_rfc9535"}


def test_clients_are_imported_when_a_source_is_opened() -> None:
    """The start of the program does not wait for them."""
    code = "import sys, podscaler.sources.cluster_sources, podscaler.cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert CLIENTS & set(done.stdout.split()) == set()
