"""The bill of materials that is built with the wheel."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import sbom

ROOT = Path(__file__).parents[3]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TRACING = {
    "certifi",
    "charset-normalizer",
    "googleapis-common-protos",
    "opentelemetry-api",
    "opentelemetry-exporter-http-transport",
    "opentelemetry-exporter-otlp-common",
    "opentelemetry-exporter-otlp-proto-common",
    "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-proto",
    "opentelemetry-sdk",
    "opentelemetry-semantic-conventions",
    "requests",
    "urllib3",
}
"""What only the extra `tracing` needs, which the image has and a plain installation has not."""

SOURCES = {
    "aio-pika",
    "aiokafka",
    "aiormq",
    "async-timeout",
    "iregexp-check",
    "jsonpath-rfc9535",
    "nats-py",
    "packaging",
    "pamqp",
    "psycopg",
    "psycopg-binary",
    "redis",
    "regex",
    "tzdata",
}
"""What only the extra `sources` needs, likewise."""


def _locked(text: str) -> dict[str, tuple[str, set[str]]]:
    """Version and hashes by package."""
    parts = re.split(r"^(?=[a-z])", text, flags=re.MULTILINE)[1:]
    found = {}
    for part in parts:
        name, _, rest = part.partition("==")
        found[name] = (rest.split()[0], set(re.findall("sha256:([0-9a-f]+)", part)))
    return found


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The document of the present lock."""
    made: dict[str, Any] = json.loads(sbom.make(PROJECT, LOCK))
    return made


def test_every_runtime_dependency_is_named(document: dict[str, Any]) -> None:
    """What the image's lock holds, the extras aside, with version and hashes of the lock."""
    named = {
        each["name"]: (each["version"], {entry["content"] for entry in each["hashes"]})
        for each in document["components"]
    }
    image = _locked((ROOT / "deploy" / "requirements.lock").read_text(encoding="utf-8"))
    assert named == {name: pin for name, pin in image.items() if name not in TRACING | SOURCES}
    assert all(hashes for _, hashes in named.values())


def test_the_document_is_of_this_version(document: dict[str, Any]) -> None:
    """It is CycloneDX, of the package and version that the wheel has."""
    root = document["metadata"]["component"]
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert (root["name"], root["version"]) == (PROJECT["name"], PROJECT["version"])


def test_it_says_what_needs_what(document: dict[str, Any]) -> None:
    """The package needs what pyproject.toml says; no dependency stands alone."""
    needs = {each["ref"]: set(each.get("dependsOn", ())) for each in document["dependencies"]}
    direct = {re.split("[>=;]", text)[0] for text in PROJECT["dependencies"]}
    assert needs["podscaler"] == direct
    assert set().union(*needs.values()) == {each["name"] for each in document["components"]}


def test_the_same_lock_gives_the_same_document(document: dict[str, Any]) -> None:
    """Two builds of a commit can be compared byte by byte."""
    assert json.loads(sbom.make(PROJECT, LOCK)) == document


def test_a_package_that_is_not_locked_is_no_small_matter() -> None:
    """A lock that lacks a package is an error, not a shorter document."""
    with pytest.raises(KeyError):
        sbom.make(PROJECT, "")
