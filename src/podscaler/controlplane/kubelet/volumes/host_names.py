"""The host name of a pod, and its fully qualified name.

    hostname: web, subdomain: shop, in the namespace default      web, web.shop.default.svc.cluster.local

`container_setup` sets the host name, and `name_files` writes both names to the hosts file of the pod's containers. A
new field that changes a name: `short_name`, or `host_name` if only programs see it.

Source: kubelet's GeneratePodHostNameAndDomain and GetNodenameForKernel; Pod API (`hostname`, `subdomain`,
`hostnameOverride`, `setHostnameAsFQDN`). Differs: a name that is too long is an error of the container, and one of the
sandbox upstream.
"""

import socket
from collections.abc import Mapping
from typing import Any, Final

from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError

ZONE: Final = "cluster.local"
"""The domain of the cluster, as `ZONE` of `podscaler.controlplane.network.dns_zone`."""
LABEL_CHARACTERS_MAX: Final = 63
"""A longer pod name is cut to a host name of this length."""
QUALIFIED_NAME_CHARACTERS_MAX: Final = 64
"""The longest host name of the Linux kernel."""


def short_name(pod: Mapping[str, Any]) -> str:
    """The pod's host name in its hosts file: `hostnameOverride`, `hostname` or the name of the pod."""
    spec = pod["spec"]
    if spec.get("hostnameOverride"):
        return str(spec["hostnameOverride"])
    name = str(spec.get("hostname") or pod["metadata"]["name"])
    return name if len(name) <= LABEL_CHARACTERS_MAX else name[:LABEL_CHARACTERS_MAX].rstrip("-.")


def qualified_name(pod: Mapping[str, Any]) -> str:
    """The host name with the domain of the pod's `subdomain`; empty for a pod without one, or with an override."""
    spec = pod["spec"]
    if not spec.get("subdomain") or spec.get("hostnameOverride"):
        return ""
    return f"{short_name(pod)}.{spec['subdomain']}.{pod['metadata']['namespace']}.svc.{ZONE}"


def host_name(pod: Mapping[str, Any]) -> str:
    """The host name that the pod's programs see; that of this machine with `hostNetwork`.

    Raises ContainerConfigError if `setHostnameAsFQDN` makes it longer than the kernel allows.
    """
    spec = pod["spec"]
    if spec.get("hostNetwork"):
        return socket.gethostname()
    qualified = qualified_name(pod) if spec.get("setHostnameAsFQDN") else ""
    if len(qualified) > QUALIFIED_NAME_CHARACTERS_MAX:
        raise ContainerConfigError(
            f"failed to construct FQDN from pod hostname and cluster domain, FQDN {qualified} is too long "
            f"({QUALIFIED_NAME_CHARACTERS_MAX} characters is the max, {len(qualified)} characters requested)"
        )
    return qualified or short_name(pod)
