"""Which programs `make assets` and `make ecosystem` build, from which Go module, into which folder of the cache.

`build_assets` builds them; tests and benchmarks ask `find_program` and do without what is not there. A folder of the
cache is complete or absent, and is named for everything that goes into it, so that a change of versions is built anew.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

KUBERNETES_VERSION = "v1.37.0"
KUBERNETES_RELEASED_AT = "2026-08-26T10:44:20Z"
HELM_VERSION = "v3.22.0"
INSTEAD_VARIABLE = "KUBEBUILDER_ASSETS"
_SOURCES = Path(__file__).resolve().parent.parent / "assets"


@dataclass(frozen=True, slots=True)
class AssetModule:
    """A Go module of the folder `assets`.

    Attributes:
        name: of its folder.
        programs: name of each program -> the package that it is built from.
        stamps: variables of packages -> the text that the linker gives them.
        replaceable: whether KUBEBUILDER_ASSETS may name a folder with these programs.
        manifests: the Go module and its folder whose manifests are kept beside the programs; None: there are none.
        is_ecosystem: whether `make ecosystem` builds it, and not `make assets`.
    """

    name: str
    programs: Mapping[str, str]
    stamps: Mapping[str, str]
    replaceable: bool = False
    manifests: tuple[str, str] | None = None
    is_ecosystem: bool = False

    @property
    def source(self) -> Path:
        """The folder with its go.mod."""
        return _SOURCES / self.name

    @property
    def linker_flags(self) -> str:
        """What `go build -ldflags` is given."""
        return " ".join(["-s", "-w", *(f"-X {variable}={text}" for variable, text in self.stamps.items())])

    @property
    def folder(self) -> Path:
        """Where its programs are, or will be once they are built."""
        instead = os.environ.get(INSTEAD_VARIABLE)
        return Path(instead) if self.replaceable and instead else cache() / self._fingerprint() / "bin"

    @property
    def manifests_folder(self) -> Path:
        """Where its manifests are, or will be once it is built."""
        return self.folder.parent / "manifests"

    def is_built(self) -> bool:
        """Whether every program of it is there."""
        return not self.missing()

    def missing(self) -> list[str]:
        """The programs that are not there, in their order."""
        return [program for program in self.programs if not os.access(self.folder / program, os.X_OK)]

    def _fingerprint(self) -> str:
        content = hashlib.sha256(
            repr((sorted(self.programs.items()), self.linker_flags, *(self.manifests or ()))).encode()
        )
        for file in sorted(_inputs(self.source)):
            content.update(f"\0{file.name}\0".encode() + file.read_bytes())
        return content.hexdigest()[:16]


def _inputs(source: Path) -> Iterator[Path]:
    yield from (source / "go.mod", source / "go.sum")
    yield from source.glob("*.go")


_MAJOR, _MINOR, _ = KUBERNETES_VERSION.removeprefix("v").split(".")


def _kubernetes_stamps() -> dict[str, str]:
    facts = {
        "gitVersion": KUBERNETES_VERSION,
        "gitMajor": _MAJOR,
        "gitMinor": _MINOR,
        "gitTreeState": "archive",
        "gitCommit": "unknown",
        "buildDate": KUBERNETES_RELEASED_AT,
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return {f"{package}.{variable}": text for package in packages for variable, text in facts.items()}


def _helm_stamps() -> dict[str, str]:
    """With the release of Kubernetes that charts are rendered for where no cluster is asked."""
    packages = ("helm.sh/helm/v3/pkg/chartutil", "helm.sh/helm/v3/pkg/lint/rules")
    facts = {"k8sVersionMajor": _MAJOR, "k8sVersionMinor": _MINOR}
    release = {f"{package}.{variable}": text for package in packages for variable, text in facts.items()}
    return {"helm.sh/helm/v3/internal/version.version": HELM_VERSION, **release}


MODULES = (
    AssetModule(
        "control_plane",
        {
            "etcd": "go.etcd.io/etcd/server/v3",
            "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
            "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
            "kubectl": "k8s.io/kubernetes/cmd/kubectl",
        },
        _kubernetes_stamps(),
        replaceable=True,
    ),
    AssetModule("informers", {"informers": "."}, {}),
    AssetModule(
        "metrics_server",
        {"metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server"},
        {},
        manifests=("sigs.k8s.io/metrics-server", "manifests"),
    ),
    AssetModule("helm", {"helm": "helm.sh/helm/v3/cmd/helm"}, _helm_stamps()),
    AssetModule(
        "prometheus_adapter",
        {"prometheus-adapter": "sigs.k8s.io/prometheus-adapter/cmd/adapter"},
        {},
        manifests=("sigs.k8s.io/prometheus-adapter", "deploy/manifests"),
    ),
    AssetModule(
        "kube_state_metrics",
        {"kube-state-metrics": "k8s.io/kube-state-metrics/v2"},
        {},
        manifests=("k8s.io/kube-state-metrics/v2", "examples/standard"),
        is_ecosystem=True,
    ),
    AssetModule(
        "keda",
        {
            "keda-operator": "github.com/kedacore/keda/v2/cmd/operator",
            "keda-adapter": "github.com/kedacore/keda/v2/cmd/adapter",
            "keda-webhooks": "github.com/kedacore/keda/v2/cmd/webhooks",
        },
        {},
        manifests=("github.com/kedacore/keda/v2", "config"),
        is_ecosystem=True,
    ),
    AssetModule(
        "argo_rollouts",
        {"argo-rollouts": "github.com/argoproj/argo-rollouts/cmd/rollouts-controller"},
        {},
        manifests=("github.com/argoproj/argo-rollouts", "manifests"),
        is_ecosystem=True,
    ),
    AssetModule(
        "vpa",
        {"vpa-recommender": "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender"},
        {},
        manifests=("k8s.io/autoscaler/vertical-pod-autoscaler", "deploy"),
        is_ecosystem=True,
    ),
)


def cache() -> Path:
    """The folder under which each module has a folder for each fingerprint; it need not exist."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "podscaler" / "assets"


def find_manifests(name: str) -> Path | None:
    """The folder with the manifests of the module `name`, None where it is not built."""
    module = next(each for each in MODULES if each.name == name)
    return module.manifests_folder if module.is_built() else None


def find_program(name: str) -> Path | None:
    """The program `name`, None where `make assets`, `make ecosystem` or KUBEBUILDER_ASSETS do not provide it."""
    for module in MODULES:
        if name in module.programs:
            path = module.folder / name
            return path if os.access(path, os.X_OK) else None
    raise LookupError(f"no Go module of {_SOURCES} has a program {name}")
