"""Writes the archive of the kubectl plugin for krew, and its manifest with the archive's address and SHA-256.

    python tools/krew_archive.py FOLDER RELEASE_URL

Called by `make krew`, which has built the wheel into FOLDER. The archive has the wheel, the launcher of deploy/krew,
the licence, and a lock file of what the plugin needs: the dependencies of podscaler and of its extras in EXTRAS, with
their hashes. The same wheel and lock give the same archive. The manifest is that of deploy/krew/podscaler.yaml;
RELEASE_URL is the address of the folder from which the archive will be downloaded.

Exit status 0, or 2 with a sentence where the wheel is missing or krew would not accept the manifest.

Source: the rules by which krew validates manifests of krew.googlecontainertools.github.com/v1alpha2.
"""

import gzip
import hashlib
import importlib.metadata
import io
import re
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import sbom
import yaml
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
KREW = ROOT / "deploy" / "krew"
NAME = "podscaler"
API_VERSION = "krew.googlecontainertools.github.com/v1alpha2"
LAUNCHER = "kubectl-podscaler"
EXTRAS = ("top",)
"""Extras whose commands the plugin should have; those that pyproject.toml does not define are skipped."""

_PLUGIN_NAME = re.compile(r"[\w-]+")
_SHA256 = re.compile(r"[a-f0-9]{64}")
_VERSION = re.compile(r"v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_SELECTOR_KEYS = frozenset({"os", "arch"})


def main(folder: Path, release_url: str) -> int:
    """Write both files into the folder; returns the exit status."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wheel = folder / f"{NAME}-{project['version']}-py3-none-any.whl"
    if not wheel.exists():
        print(f"{wheel} is missing: make wheel", file=sys.stderr)
        return 2
    data = archive(wheel, lock(project, (ROOT / "requirements.lock").read_text(encoding="utf-8")))
    path = folder / f"{LAUNCHER}-v{project['version']}.tar.gz"
    path.write_bytes(data)
    uri = f"{release_url.rstrip('/')}/{path.name}"
    text = completed((KREW / f"{NAME}.yaml").read_text(encoding="utf-8"), project["version"], uri, data)
    found = list(faults(NAME, yaml.safe_load(text)))
    if found:
        print("\n".join(f"krew would not accept the manifest: {each}" for each in found), file=sys.stderr)
        return 2
    written = folder / f"{NAME}.yaml"
    written.write_text(text, encoding="utf-8")
    print(path, written, sep="\n")
    return 0


def lock(project: Mapping[str, Any], locked: str) -> str:
    """The entries of a lock file, with their hashes, for the dependencies of the project and of EXTRAS.

    Raises:
        KeyError: a package is needed that the lock does not name.
    """
    entries = {canonicalize_name(match["name"]): match[0] for match in sbom.LOCKED.finditer(locked)}
    extras = project.get("optional-dependencies") or {}
    waiting = sbom.needed([*project["dependencies"], *(each for name in EXTRAS for each in extras.get(name, ()))])
    found: set[NormalizedName] = set()
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += sbom.needed(importlib.metadata.requires(each) or ())
    return "".join(f"{entries[each].rstrip()}\n" for each in sorted(found))


def archive(wheel: Path, requirements: str) -> bytes:
    """The gzip tar file; equal for equal content."""
    digest = hashlib.sha256(wheel.read_bytes() + requirements.encode()).hexdigest()[:16]
    files = {
        "LICENSE": ((ROOT / "LICENSE").read_bytes(), 0o644),
        LAUNCHER: ((KREW / LAUNCHER).read_bytes(), 0o755),
        "digest": (f"{digest}\n".encode(), 0o644),
        "requirements.lock": (requirements.encode(), 0o644),
        wheel.name: (wheel.read_bytes(), 0o644),
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, (content, mode) in sorted(files.items()):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), mode
            tar.addfile(info, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0)


def completed(template: str, version: str, uri: str, data: bytes) -> str:
    """The manifest with version, uri and SHA-256 of the archive in place of the template's, without its comments."""
    values = {"version": f"v{version}", "uri": uri, "sha256": hashlib.sha256(data).hexdigest()}
    lines = [line for line in template.splitlines() if not line.startswith("#")]
    return "\n".join([_VALUE.sub(lambda match: f"{match[1]}: {values[match[2]]}", line) for line in lines]) + "\n"


_VALUE = re.compile(r"^( +(version|uri|sha256)): .*")


def faults(name: str, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Why krew would reject a manifest in the file `name`.yaml, a sentence each."""
    spec = manifest.get("spec") or {}
    if manifest.get("apiVersion") != API_VERSION:
        yield f"apiVersion must be {API_VERSION}"
    if manifest.get("kind") != "Plugin":
        yield "kind must be Plugin"
    if not _PLUGIN_NAME.fullmatch(name) or (manifest.get("metadata") or {}).get("name") != name:
        yield "metadata.name must be the name of the file, of letters, digits, _ and -"
    short = spec.get("shortDescription") or ""
    if not short or "\n" in short or "\r" in short:
        yield "spec.shortDescription must be one line"
    if not _VERSION.fullmatch(str(spec.get("version") or "")):
        yield "spec.version must be a semantic version that begins with v"
    if not spec.get("platforms"):
        yield "spec.platforms must have a platform"
    for index, each in enumerate(spec.get("platforms") or ()):
        yield from (f"spec.platforms[{index}].{fault}" for fault in _platform_faults(each))


def _platform_faults(platform: Mapping[str, Any]) -> Iterator[str]:
    if not str(platform.get("uri") or "").startswith("https://"):
        yield "uri must be an https address"
    if not _SHA256.fullmatch(str(platform.get("sha256") or "")):
        yield "sha256 must be 64 hexadecimal digits in lower case"
    if not platform.get("bin"):
        yield "bin is missing"
    files = platform.get("files")
    if files is not None and (not files or not all(each.get("from") and each.get("to") for each in files)):
        yield "files must be absent, or have entries with from and to"
    selector = platform.get("selector") or {}
    keys = {*(selector.get("matchLabels") or {}), *(each["key"] for each in selector.get("matchExpressions") or ())}
    if not keys or not keys <= _SELECTOR_KEYS:
        yield "selector must select by os and arch, and nothing else"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
