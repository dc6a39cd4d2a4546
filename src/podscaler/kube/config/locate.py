"""Finds the configuration of the API server: the kubeconfig that applies, or the pod's service account.

The modules of `podscaler.cli` call `find_config`; the options of the adapter also call `in_cluster_config`.

The first of these that is given or exists applies: `--kubeconfig`; the files of KUBECONFIG, merged, without those that
do not exist; ~/.kube/config; without `--context`, the service account of the pod.

Source: kubectl's order; client-go's in-cluster configuration.
"""

import os
from pathlib import Path

from podscaler.base.clock import Clock, SystemClock
from podscaler.base.errors import UsageError
from podscaler.kube.client import urls
from podscaler.kube.config import kubeconfig, kubeconfig_file
from podscaler.kube.transport import proxies
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.credentials import TokenFile

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def find_config(explicit_path: str | None = None, context: str | None = None, clock: Clock | None = None) -> Config:
    """The Config that applies; reads files, so call it before the event loop runs, or in a thread.

    Args:
        explicit_path: the value of `--kubeconfig`; None or empty if it is not given.
        context: the value of `--context`; None or empty for the file's current context.
        clock: for tokens that are read again; None for the system's clock.

    Raises:
        UsageError: if a kubeconfig or the in-cluster configuration is unusable (with the file and the field), if
            `context` is given without a kubeconfig, and if there is neither a kubeconfig nor a pod.
    """
    clock = clock or SystemClock()
    if explicit_path:
        return kubeconfig.load([Path(explicit_path)], context, clock)
    if listed_paths := [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]:
        existing_paths = [path for path in listed_paths if kubeconfig_file.expand_home(path, "kubeconfig").exists()]
        return kubeconfig.load(existing_paths or listed_paths, context, clock)
    if (home := _find_home_config()) is not None:
        return kubeconfig.load([home], context, clock)
    if context:
        raise UsageError(f'--context "{context}" needs a kubeconfig: give --kubeconfig or set KUBECONFIG')
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return in_cluster_config(SERVICE_ACCOUNT, clock)
    raise UsageError("no API server is known: give --kubeconfig, set KUBECONFIG, or run inside a cluster")


def _find_home_config() -> Path | None:
    """~/.kube/config; None if it does not exist, or there is no home: in a pod the user may be any number."""
    try:
        path = Path.home() / ".kube" / "config"
        return path if path.exists() else None
    except (RuntimeError, PermissionError):
        return None


def in_cluster_config(folder: Path, clock: Clock) -> Config:
    """The Config of a pod, from its environment and the service account mounted at `folder`.

    Raises UsageError if a variable, the token or ca.crt is missing, or the address or the proxy is unusable.
    """
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise UsageError("in-cluster configuration needs KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT")
    token = folder / "token"
    if not token.exists():
        raise UsageError(f"in-cluster configuration needs the service account's token at {token}")
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    server = f"https://{authority}"
    if address_error := urls.address_error(server):
        variables = "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT"
        raise UsageError(f"in-cluster configuration: {variables}: {address_error}")
    return Config(
        server=server,
        credentials=TokenFile(token, clock),
        ca_pem=kubeconfig_file.read_file(folder / "ca.crt", "in-cluster certificate authority"),
        proxy=proxies.from_environment(server),
        namespace=_namespace(folder / "namespace"),
        origin="the in-cluster configuration",
    )


def _namespace(path: Path) -> str:
    """The namespace in a file of the service account; `default` if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"
