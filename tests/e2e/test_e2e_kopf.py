"""An operator made with kopf works on our server as it is: custom objects, Deployments, finalizers, a restart."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from up_process import Object, Up, eventually

from patience import WITHIN_S

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

OPERATOR = Path(__file__).parent / "widget_operator.py"
WIDGETS = "/apis/example.org/v1/namespaces/default/widgets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CUSTOM = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition() -> Object:
    """Widgets: a size, and whatever an operator writes into the status."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}}},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [version],
        },
    }


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """The API server alone, with the definition of widgets."""
    instance = Up(tmp_path_factory.mktemp("kopf") / "data", ("--api-only",)).start()
    try:
        instance.create(CUSTOM, definition())
        eventually(lambda: instance.find(WIDGETS), until=lambda found: found is not None)
        yield instance
    finally:
        assert instance.stop() == 0, instance.log.read_text()


@contextmanager
def operator(up: Up, journal: Path) -> Iterator[None]:
    """The operator in a process of its own, without peers, until the block ends."""
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace=default", str(OPERATOR)]
    environment = {**os.environ, "KUBECONFIG": str(up.kubeconfig), "OPERATOR_JOURNAL": str(journal)}
    log = journal.with_suffix(".log")
    with log.open("a") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        yield
        assert process.poll() is None, log.read_text()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(WITHIN_S)
    assert "Traceback" not in log.read_text()


def told(journal: Path) -> list[str]:
    """What the operator was told so far."""
    return journal.read_text().splitlines() if journal.exists() else []


def widget(name: str, size: int) -> Object:
    """A custom object."""
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}}


def size_told(up: Up, name: str) -> int | None:
    """The size that the operator wrote into the widget's status."""
    size: int | None = up.get(f"{WIDGETS}/{name}").get("status", {}).get("size")
    return size


def test_a_custom_object_from_creation_to_deletion(served: Up, tmp_path: Path) -> None:
    """Each handler is called once, its results are in the status, and the finalizer holds the object until the last."""
    journal = tmp_path / "journal"
    with operator(served, journal):
        served.create(WIDGETS, widget("one", 3))
        eventually(lambda: size_told(served, "one"), until=lambda size: size == 3)
        made = served.get(f"{WIDGETS}/one")
        assert made["status"]["created"] == {"message": "one has size 3"}
        assert made["metadata"]["finalizers"] == ["kopf.zalando.org/KopfFinalizerMarker"]
        served.patch(f"{WIDGETS}/one", {"spec": {"size": 5}})
        eventually(lambda: size_told(served, "one"), until=lambda size: size == 5)
        served.delete(f"{WIDGETS}/one")
        eventually(lambda: served.find(f"{WIDGETS}/one"), until=lambda found: found is None)
    assert told(journal) == ["created one", "resized one 3 5", "deleted one"]


def test_deployments_are_handled(served: Up, tmp_path: Path) -> None:
    """An object of a built-in kind is marked, and goes without a finalizer."""
    journal = tmp_path / "journal"
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "any"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    path = f"{DEPLOYMENTS}/web"
    with operator(served, journal):
        served.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
        marked = eventually(lambda: served.get(path)["metadata"], until=lambda found: "labels" in found)
        assert (marked["labels"], marked.get("finalizers")) == ({"seen": "yes"}, None)
        served.delete(path)
        eventually(lambda: told(journal), until=lambda lines: lines == ["deployed web", "undeployed web"])


def test_a_restarted_operator_continues(served: Up, tmp_path: Path) -> None:
    """What was handled is not handled again; what changed while it was away is."""
    journal = tmp_path / "journal"
    served.create(WIDGETS, widget("kept", 1))
    with operator(served, journal):
        eventually(lambda: size_told(served, "kept"), until=lambda size: size == 1)
    served.patch(f"{WIDGETS}/kept", {"spec": {"size": 2}})
    served.create(WIDGETS, widget("new", 9))
    with operator(served, journal):
        eventually(lambda: [size_told(served, name) for name in ("kept", "new")], until=lambda sizes: sizes == [2, 9])
    assert sorted(told(journal)) == ["created kept", "created new", "resized kept 1 2"]
