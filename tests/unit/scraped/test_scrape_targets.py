"""Which pods are scraped, and where."""

from typing import Any

import pytest

from podscaler.controlplane.metrics.scraped.targets import ScrapeTarget, TargetError, target_of

SCRAPED = {"prometheus.io/scrape": "true"}


def pod(annotations: dict[str, str] | None = None, *ports: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A pod with one container."""
    return {
        "metadata": {"name": "web", "namespace": "default", "annotations": annotations},
        "spec": {"containers": [{"name": "c", "ports": list(ports)}], **spec},
    }


HTTP = {"containerPort": 8080}
METRICS = {"name": "metrics", "containerPort": 9090}


@pytest.mark.parametrize(
    ("wanted", "target"),
    [
        (pod(), None),
        (pod(None, HTTP), None),
        (pod(None, HTTP, METRICS), ("http", 9090, "/metrics")),
        (pod({"prometheus.io/scrape": "false"}, METRICS), None),
        (pod(SCRAPED, HTTP), ("http", 8080, "/metrics")),
        (pod(SCRAPED, HTTP, METRICS), ("http", 9090, "/metrics")),
        (pod(SCRAPED | {"prometheus.io/port": "8000"}), ("http", 8000, "/metrics")),
        (pod({"prometheus.io/scheme": "HTTPS", "prometheus.io/path": "stats"}, METRICS), ("https", 9090, "/stats")),
        (pod(SCRAPED | {"prometheus.io/path": ""}, HTTP), ("http", 8080, "/metrics")),
        (pod(None, METRICS | {"protocol": "UDP"}), None),
        (pod(SCRAPED, METRICS, runtimeClassName="simulated"), None),
        (
            pod(None, initContainers=[{"name": "s", "restartPolicy": "Always", "ports": [METRICS]}]),
            ("http", 9090, "/metrics"),
        ),
        (pod(None, initContainers=[{"name": "i", "ports": [METRICS]}]), None),
    ],
)
def test_targets(wanted: dict[str, Any], target: tuple[str, int, str] | None) -> None:
    """Annotations count before ports; without either a pod is not scraped."""
    assert target_of(wanted) == (None if target is None else ScrapeTarget(*target))


@pytest.mark.parametrize(
    ("annotations", "text"),
    [
        ({}, "no container states a port, and there is no annotation prometheus.io/port"),
        ({"prometheus.io/port": "0"}, "annotation prometheus.io/port: must be a number from 1 to 65535"),
        ({"prometheus.io/port": "70000"}, "annotation prometheus.io/port: must be a number from 1 to 65535"),
        ({"prometheus.io/port": "80 "}, "annotation prometheus.io/port: must be a number from 1 to 65535"),
        ({"prometheus.io/port": "9" * 5000}, "annotation prometheus.io/port: must be a number from 1 to 65535"),
        (
            {"prometheus.io/port": "80", "prometheus.io/scheme": "file"},
            "annotation prometheus.io/scheme: must be http or https",
        ),
        (
            {"prometheus.io/port": "80", "prometheus.io/path": "/" * 1025},
            "annotation prometheus.io/path: must not have more than 1024 characters",
        ),
    ],
)
def test_what_cannot_be_scraped(annotations: dict[str, str], text: str) -> None:
    """The annotation that is wrong is named."""
    with pytest.raises(TargetError) as raised:
        target_of(pod(SCRAPED | annotations))
    assert str(raised.value) == text


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("/metrics", "http://127.2.1.1:8080/metrics"),
        ("//evil.example/x", "http://127.2.1.1:8080//evil.example/x"),
        ("/a?b=c#d", "http://127.2.1.1:8080/a%3Fb=c%23d"),
        ("/a\r\nHost: evil", "http://127.2.1.1:8080/a%0D%0AHost:%20evil"),
        ("/../x", "http://127.2.1.1:8080/x"),
        ("@evil.example/", "http://127.2.1.1:8080/@evil.example/"),
    ],
)
def test_a_path_names_no_other_host(path: str, url: str) -> None:
    """What stands in the annotation is escaped, and never leads anywhere else."""
    target = target_of(pod(SCRAPED | {"prometheus.io/path": path}, HTTP))
    assert target is not None
    built = target.url("127.2.1.1", 8080)
    assert (str(built), built.host) == (url, "127.2.1.1")
