"""Writes the generated files of deploy/: kustomize's from the Helm chart, the chart's definitions from deploy/crd.

Called by `make manifests` (`python tools/deploy_manifests.py [FOLDER]`); a test repeats it and compares. The chart is
the one source of the manifests, and the comments of its templates stay: they say why each permission is needed. What
only Helm uses (its labels) is left out.

Exit status 0 when everything is written, 2 where `make assets` has not built helm.
"""

import subprocess
import sys
from pathlib import Path

import asset_modules

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "podscaler"
DEFINITIONS = ("podautoscalers.yaml", "metricsources.yaml")
NAMESPACE = "podscaler-system"
SOURCE = "# Source: podscaler/templates/"
HELMS_OWN = ("app.kubernetes.io/managed-by: Helm", "helm.sh/chart: ")

SETTINGS = (
    "replicas=1",
    "podDisruptionBudget.enabled=true",
    "networkPolicy.enabled=true",
    "metrics.serviceMonitor.enabled=true",
    "controller.metricSources.secrets=true",
    "adapter.enabled=true",
    "adapter.apiServices={v1beta2.custom.metrics.k8s.io,v1beta1.custom.metrics.k8s.io,v1beta1.external.metrics.k8s.io}",
)
"""Everything is rendered: what is optional becomes a component."""

ADAPTER_SECRETS = ("adapter.metricSources.enabled=true", "adapter.metricSources.secrets=true")
"""A component of its own: the other ones are rendered without these."""

SHARES = 8
"""How many shares the overlay `sharded` has."""

PLACES = {
    "serviceaccount.yaml": "kustomize/base",
    "rbac.yaml": "kustomize/base",
    "service.yaml": "kustomize/base",
    "deployment.yaml": "kustomize/base",
    "poddisruptionbudget.yaml": "kustomize/overlays/high-availability",
    "networkpolicy.yaml": "kustomize/components/network-policy",
    "servicemonitor.yaml": "kustomize/components/service-monitor",
    "metric-source-secrets.yaml": "kustomize/components/metric-source-secrets",
    "adapter.yaml": "kustomize/components/adapter",
    "adapter-metric-source-secrets.yaml": "kustomize/components/adapter-metric-source-secrets",
}
"""The template, and where what it makes goes."""


def main() -> int:
    """The exit status, as the module says."""
    helm = asset_modules.find_program("helm")
    if helm is None:
        print("there is no helm: run make assets", file=sys.stderr)
        return 2
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else DEPLOY
    for name, text in generated(helm).items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


def generated(helm: Path) -> dict[str, str]:
    """The text of each generated file, by its path below deploy."""
    with_sources = _split(_render(helm, *SETTINGS, *ADAPTER_SECRETS))
    files = with_sources | _split(_render(helm, *SETTINGS))
    placed = {f"{place}/{template}": files[template] for template, place in PLACES.items()}
    shared = _split(_render(helm, *SETTINGS, f"controller.shards={SHARES}"))
    return {
        **placed,
        "kustomize/overlays/sharded/rbac.yaml": _role(shared["rbac.yaml"]),
        **{f"helm/podscaler/crds/{name}": _document(DEPLOY / "crd" / name) for name in DEFINITIONS},
    }


def _document(path: Path) -> str:
    """The file as a document of a stream: `helm show crds` prints the files one after the other."""
    return f"---\n{path.read_text()}"


def _render(helm: Path, *settings: str) -> str:
    command = [str(helm), "template", "podscaler", str(CHART), f"--namespace={NAMESPACE}"]
    command += [f"--set={each}" for each in settings]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _split(rendered: str) -> dict[str, str]:
    """The documents of each template, without what only Helm uses."""
    files: dict[str, list[str]] = {}
    for document in rendered.split("---\n")[1:]:
        source, _, body = document.partition("\n")
        files.setdefault(source.removeprefix(SOURCE), []).append(_plain(body))
    return {name: "---\n".join(documents) for name, documents in files.items()}


def _plain(document: str) -> str:
    kept = [line for line in document.splitlines() if not line.lstrip().startswith(HELMS_OWN)]
    return "\n".join(kept) + "\n"


def _role(rbac: str) -> str:
    """The Role alone: the ClusterRole does not depend on the number of shares."""
    return next(document for document in rbac.split("---\n") if "\nkind: Role\n" in document)


if __name__ == "__main__":
    sys.exit(main())
