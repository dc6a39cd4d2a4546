"""A container's own /etc/resolv.conf and /etc/hosts, where the machine allows private mounts.

`kubelet.pods.container_setup` calls `write` at each start of a container. Where the control plane has no DNS server,
the hosts file has the Services that exist at that time. Another file is another entry of `contents` in `write`.

Source: DNS for Services and Pods (Kubernetes documentation); the kubelet's resolv.conf and its managed hosts file.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from podscaler.controlplane.kubelet.launching.container_config import Mount
from podscaler.controlplane.kubelet.volumes import host_names
from podscaler.controlplane.kubelet.volumes.host_names import ZONE

HOSTS: Final = "/etc/hosts"
RESOLV_CONF: Final = "/etc/resolv.conf"
SEARCHES_MAX: Final = 32
NAMESERVERS_MAX: Final = 3
"""As in kubelet, which cuts longer lists."""

ResolverSettings = dict[str, list[str]]
"""The settings of a resolv.conf: `nameserver`, `search` and `options` -> their values."""

_HOSTS_HEAD: Final = """\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""


def resolv_conf(pod: Mapping[str, Any], *, nameserver: str, machine_resolv_conf: str) -> str | None:
    """The resolv.conf for the pod's `dnsPolicy` and `dnsConfig`, None if the machine's own file is right.

    Args:
        nameserver: the address of the control plane's DNS server; empty if it has none (ClusterFirst is Default then).
        machine_resolv_conf: the content of the machine's own file.
    """
    spec = pod["spec"]
    policy, config = spec.get("dnsPolicy") or "ClusterFirst", spec.get("dnsConfig") or {}
    if policy == "ClusterFirst" and spec.get("hostNetwork"):
        policy = "Default"  # ClusterFirstWithHostNet is for such pods
    uses_cluster_dns = bool(nameserver) and policy.startswith("ClusterFirst")
    if policy == "None":
        base: ResolverSettings = {"nameserver": [], "search": [], "options": []}
    elif uses_cluster_dns:
        base = {
            "nameserver": [nameserver],
            "search": [
                *_cluster_searches(pod["metadata"]["namespace"]),
                *_parse_resolv_conf(machine_resolv_conf)["search"],
            ],
            "options": ["ndots:5"],
        }
    elif config:
        base = _parse_resolv_conf(machine_resolv_conf)
    else:
        return None
    return _format_resolv_conf(_with_dns_config(base, config))


def _cluster_searches(namespace: str) -> list[str]:
    """The search domains of a pod in this namespace."""
    return [f"{namespace}.svc.{ZONE}", f"svc.{ZONE}", ZONE]


def _parse_resolv_conf(resolv_conf_text: str) -> ResolverSettings:
    """The settings of a resolv.conf; the last `search` and `options` count."""
    settings: ResolverSettings = {"nameserver": [], "search": [], "options": []}
    for line in resolv_conf_text.splitlines():
        keyword, *values = line.split() or [""]
        if keyword == "nameserver":
            settings[keyword] += values[:1]
        elif keyword in ("search", "options"):
            settings[keyword] = values
    return settings


def _with_dns_config(base: ResolverSettings, config: Mapping[str, Any]) -> ResolverSettings:
    """`base` with the pod's dnsConfig: servers and searches are added, options of the same name replaced.

    Args:
        config: a core/v1 PodDNSConfig; may be empty.
    """
    options = {option.partition(":")[0]: option for option in base["options"]}  # name -> NAME or NAME:VALUE
    for dns_option in config.get("options") or []:
        name, value = dns_option["name"], dns_option.get("value")
        options[name] = f"{name}:{value}" if value else name
    return {
        "nameserver": _distinct([*base["nameserver"], *(config.get("nameservers") or [])])[:NAMESERVERS_MAX],
        "search": _distinct([*base["search"], *(config.get("searches") or [])])[:SEARCHES_MAX],
        "options": list(options.values()),
    }


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _format_resolv_conf(settings: ResolverSettings) -> str:
    """The text of a resolv.conf with these settings."""
    lines = [f"nameserver {server}" for server in settings["nameserver"]]
    lines += [f"{keyword} {' '.join(settings[keyword])}" for keyword in ("search", "options") if settings[keyword]]
    return "".join(f"{line}\n" for line in lines)


def hosts(pod: Mapping[str, Any], *, pod_ip: str, services: Iterable[Mapping[str, Any]]) -> str:
    """The hosts file of a pod.

    Args:
        services: the Services to list, as no DNS server resolves their names; those without a clusterIP are left out.
    """
    own_names = [name for name in (host_names.qualified_name(pod), host_names.short_name(pod)) if name]
    lines = [_HOSTS_HEAD, "\t".join([pod_ip, *own_names]) + "\n"]
    service_lines = [line for service in services if (line := _service_line(service, pod["metadata"]["namespace"]))]
    if service_lines:
        lines += ["\n# Services at the time of the container's start.\n", *service_lines]
    if aliases := pod["spec"].get("hostAliases"):
        lines.append("\n# Entries added by HostAliases.\n")
        lines += [f"{alias['ip']}\t" + "\t".join(alias.get("hostnames") or []) + "\n" for alias in aliases]
    return "".join(lines)


def _service_line(service: Mapping[str, Any], namespace: str) -> str:
    """The line of a Service in the hosts file of a pod of `namespace`; empty for a Service without a clusterIP."""
    meta, address = service["metadata"], service["spec"].get("clusterIP", "")
    if not address or address == "None":
        return ""
    qualified_name = f"{meta['name']}.{meta['namespace']}"
    names = [f"{qualified_name}.svc.{ZONE}", f"{qualified_name}.svc", qualified_name]
    if meta["namespace"] == namespace:
        names.append(meta["name"])
    return f"{address}\t{' '.join(names)}\n"


def write(
    pod: Mapping[str, Any],
    folder: Path,
    mount_paths: Collection[str],
    *,
    pod_ip: str,
    nameserver: str,
    services: Iterable[Mapping[str, Any]],
) -> tuple[Mount, ...]:
    """Write the files of a container to `folder` and return their mounts. Blocks. Raises OSError.

    Args:
        mount_paths: the container's own mount paths. A file at one of these is left out, as are both if /etc is one.
        nameserver, services: as for `resolv_conf` and `hosts`.
    """
    contents: dict[str, str | None] = {}  # path in the container -> content; None: the machine's own file is right
    if "/etc" not in mount_paths:
        contents[RESOLV_CONF] = resolv_conf(pod, nameserver=nameserver, machine_resolv_conf=_machine_resolv_conf())
        contents[HOSTS] = None if pod["spec"].get("hostNetwork") else hosts(pod, pod_ip=pod_ip, services=services)
    texts = {path: content for path, content in contents.items() if content is not None and path not in mount_paths}
    if texts:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    return tuple(Mount(_write_file(folder, path, text), path, read_only=False) for path, text in texts.items())


def _machine_resolv_conf() -> str:
    """The content of the machine's own resolv.conf, empty if it cannot be read."""
    try:
        return Path(RESOLV_CONF).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _write_file(folder: Path, path: str, content: str) -> str:
    """Write the file for `path` of the container into `folder`, and return its path on this machine. Raises OSError.

    It is replaced atomically: a process that is left of an earlier start keeps the file that it has mounted.
    """
    target = folder / os.path.basename(path)
    draft = target.with_suffix(".new")
    draft.write_text(content, encoding="utf-8")
    draft.chmod(0o644)
    os.replace(draft, target)
    return str(target)
