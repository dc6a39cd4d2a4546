"""Writes the bill of materials of the wheel: what podscaler needs at run time, as CycloneDX JSON.

    python tools/sbom.py FOLDER

Called by `make wheel`. FOLDER/podscaler-VERSION.cdx.json names every package that an installation without extras has on
Linux with Python 3.11, with its version, the hashes of all its artifacts from requirements.lock, and what needs it. The
same lock gives the same file.
"""

import importlib.metadata
import os
import re
import sys
import tomllib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
_ENVIRONMENT = {
    "python_version": "3.11",
    "python_full_version": "3.11.0",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "os_name": "posix",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
    "extra": "",
}
LOCKED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)(?P<rest>(?:.*\\\n)*.*)", re.MULTILINE)
"""One entry of a lock file: `name`, `version`, and the `rest` with the hashes."""
_EPOCH_S = 1_580_601_600
"""2020-02-02, which hatchling's wheels bear too where SOURCE_DATE_EPOCH is not set."""


def main() -> int:
    """Write the file into the folder that the command line names; returns 0."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    document = make(project, (ROOT / "requirements.lock").read_text(encoding="utf-8"))
    path = folder / f"{project['name']}-{project['version']}.cdx.json"
    path.write_text(document, encoding="utf-8")
    print(path)
    return 0


def make(project: dict[str, object], lock: str) -> str:
    """The document, for the `[project]` table of pyproject.toml and the text of a lock file with hashes.

    Raises:
        KeyError: a package is needed that the lock does not name.
    """
    name, version, dependencies = str(project["name"]), str(project["version"]), project["dependencies"]
    assert isinstance(dependencies, list)
    locked = {canonicalize_name(match["name"]): match for match in LOCKED.finditer(lock)}
    root = Component(name=name, version=version, type=ComponentType.APPLICATION, bom_ref=name)
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"{name} {version}\n{lock}"))
    bom.metadata.component = root
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", _EPOCH_S)), UTC)
    components: dict[NormalizedName, Component] = {}
    waiting = [(root, needed(dependencies))]
    while waiting:
        parent, names = waiting.pop()
        for each in names:
            if each not in components:
                components[each] = _component(each, locked[each])
                waiting.append((components[each], needed(importlib.metadata.requires(each) or ())))
        bom.register_dependency(parent, [components[each] for each in names])
    bom.components = components.values()
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def needed(requirements: Iterable[str]) -> list[NormalizedName]:
    """The names of the packages that requirements ask for on Linux with Python 3.11, without extras."""
    parsed = [Requirement(text) for text in requirements]
    return sorted(
        canonicalize_name(each.name) for each in parsed if each.marker is None or each.marker.evaluate(_ENVIRONMENT)
    )


def _component(name: str, locked: re.Match[str]) -> Component:
    version = locked["version"]
    hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", locked["rest"])
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=name,
        purl=PackageURL("pypi", name=name, version=version),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=content) for content in hashes],
    )


if __name__ == "__main__":
    sys.exit(main())
