"""Builds the real programs that tests and benchmarks compare us with: etcd, the Kubernetes control plane, kubectl.

Called by `make assets`, and with the argument `ecosystem` by `make ecosystem`: programs of other projects that run on
`podscaler up`. Takes minutes the first time and nothing after. Each module is built beside its place in the cache and
moved there whole, one build at a time on a machine, so that nobody ever finds half of it.

Exit status 0 when everything is there, 1 when a build fails, 2 where Go is absent or KUBEBUILDER_ASSETS is incomplete.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import asset_modules
from asset_modules import AssetModule

AT_ONCE = 2
"""Compilations at the same time: linking kube-apiserver alone takes more than a gigabyte."""


def main(arguments: Sequence[str] = ()) -> int:
    """The exit status, as the module says."""
    modules = [each for each in asset_modules.MODULES if each.is_ecosystem == ("ecosystem" in arguments)]
    wanted = [module for module in modules if not module.is_built()]
    if wrong := _refusal(wanted):
        print(wrong, file=sys.stderr)
        return 2
    try:
        for module in wanted:
            with _alone():
                _ensure(module)
    except subprocess.CalledProcessError as failed:
        print(f"building failed: {failed}", file=sys.stderr)
        return 1
    for module in modules:
        print(f"{', '.join(module.programs)}: {module.folder}")
    return 0


def _refusal(wanted: list[AssetModule]) -> str:
    """Why nothing can be built, empty where it can (or need not be)."""
    instead = os.environ.get(asset_modules.INSTEAD_VARIABLE)
    for module in wanted:
        if module.replaceable and instead:
            return (
                f"{asset_modules.INSTEAD_VARIABLE} is {instead}, where these are missing: {', '.join(module.missing())}"
            )
    if wanted and shutil.which("go") is None:
        names = ", ".join(program for module in wanted for program in module.missing())
        return f"Go is not installed, and it is needed to build {names}; tests that need them are skipped"
    return ""


@contextmanager
def _alone() -> Iterator[None]:
    """Waits until no other build runs on this cache."""
    asset_modules.cache().mkdir(parents=True, exist_ok=True)
    with (asset_modules.cache() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _ensure(module: AssetModule) -> None:
    if module.is_built():
        return
    place = module.folder.parent
    unfinished = Path(tempfile.mkdtemp(prefix=f"{place.name}.", suffix=".unfinished", dir=place.parent))
    try:
        (unfinished / "bin").mkdir()
        for program, package in module.programs.items():
            _build(module, package, unfinished / "bin" / program)
        if module.manifests is not None:
            _copy_manifests(module, *module.manifests, unfinished / module.manifests_folder.name)
        unfinished.chmod(0o755)
        shutil.rmtree(place, ignore_errors=True)
        unfinished.rename(place)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _build(module: AssetModule, package: str, output: Path) -> None:
    print(f"building {output.name} ({package})", flush=True)
    started_s = time.monotonic()
    flags = ["-mod=readonly", "-buildvcs=false", "-trimpath", "-p", str(AT_ONCE), "-ldflags", module.linker_flags]
    command = ["go", "build", *flags, "-o", str(output), package]
    subprocess.run(command, cwd=module.source, check=True, env={**os.environ, "CGO_ENABLED": "0"})
    print(f"  {output.stat().st_size / 2**20:.0f} MiB in {time.monotonic() - started_s:.0f} s", flush=True)


def _copy_manifests(module: AssetModule, go_module: str, folder: str, target: Path) -> None:
    command = ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", go_module]
    source = subprocess.run(command, cwd=module.source, check=True, capture_output=True, text=True).stdout.strip()
    shutil.copytree(Path(source, folder), target, copy_function=shutil.copyfile)
    for each in (target, *target.rglob("*")):  # the module cache is read-only
        each.chmod(0o755 if each.is_dir() else 0o644)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
