"""Making ready what a container's process is started with.

`container_run` calls `prepare` at each start. What the spec asks for and cannot be had is a ConfigFault with a reason.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from podscaler.controlplane.kubelet.containers import name_mounts, token_renewal
from podscaler.controlplane.kubelet.containers.host import Host
from podscaler.controlplane.kubelet.containers.name_mounts import NameFacts
from podscaler.controlplane.kubelet.launching import container_ports
from podscaler.controlplane.kubelet.launching.container_ports import PortPlan
from podscaler.controlplane.kubelet.launching.images import ImageCommand
from podscaler.controlplane.kubelet.launching.launch_plan import Identity, Launch
from podscaler.controlplane.kubelet.launching.port_translation import PortTrap
from podscaler.controlplane.kubelet.pods.status_writer import PodWriter
from podscaler.controlplane.kubelet.processes import process_identity
from podscaler.controlplane.kubelet.volumes import container_user, environment, expansion, service_variables, volumes
from podscaler.controlplane.kubelet.volumes.references import ConfigFault, PodPlacement

IMAGE_NOT_KNOWN: Final = "ImageNotKnown"
MOUNTS_NOT_POSSIBLE: Final = "MountsNotPossible"


async def prepare(
    host: Host,
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    *,
    place: PodPlacement,
    sources: Mapping[str, str],
    container_id: str,
) -> Launch:
    """The launch of `container`.

    Args:
        sources: the pod's volumes (`volumes.prepare`).
        container_id: of this start.

    Raises ConfigFault.
    """
    image = host.resolve_image(container.get("image", ""))
    ids = container_user.identity(
        pod, container, user=host.capabilities.user, may_change=host.capabilities.may_change_user
    )
    env = _environment(host, pod, container, place=place, image=image, ids=ids)
    container = _mountable(host, container)
    markers = {process_identity.INSTANCE_VARIABLE: host.instance, process_identity.CONTAINER_VARIABLE: container_id}
    launch = Launch(
        argv=argv(container, image, env),
        env=env | markers,
        cwd=container.get("workingDir") or str(_work_folder(host, pod, container)),
        identity=ids,
        tty=bool(container.get("tty")),
        stdin=bool(container.get("stdin")),
        max_processes=host.capabilities.processes.of_user(ids.user if ids else None),
        port_trap=_port_trap(host, pod, place),
    )
    facts = name_mounts.facts(host, place)
    return await host.threads.run(_finish, host, pod, container, sources=sources, launch=launch, facts=facts)


def _environment(
    host: Host,
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    *,
    place: PodPlacement,
    image: ImageCommand | None,
    ids: Identity | None,
) -> dict[str, str]:
    plan = port_plan(host, container, ids)
    told = {} if plan.told is None else {"PORT": str(plan.told)}
    folders = [host.settings.search_path, *([str(host.paths.programs)] if image and image.brings_programs else [])]
    base = {
        "PATH": ":".join(folders),
        "HOSTNAME": pod["spec"].get("hostname") or pod["metadata"]["name"],
        "HOME": str(_work_folder(host, pod, container)) if ids is None else "/",
        "POD_IP": place.pod_ip,
        **(image.env if image else {}),
        **told,
    }
    links = pod["spec"].get("enableServiceLinks", True) is not False
    services = service_variables.service_variables(
        _services(host, pod["metadata"]["namespace"]), namespace=pod["metadata"]["namespace"], links=links
    )
    return environment.environment(pod, container, place, find=host.registry.find, base=base, services=services)


def _services(host: Host, namespace: str) -> list[Mapping[str, Any]]:
    master = host.registry.find("services", "default", "kubernetes")
    own = [s for s in host.registry.list("services", namespace) if _name(s) != ("default", "kubernetes")]
    return [*([master] if master else []), *own]


def _name(service: Mapping[str, Any]) -> tuple[str, str]:
    return service["metadata"]["namespace"], service["metadata"]["name"]


def argv(container: Mapping[str, Any], image: ImageCommand | None, env: Mapping[str, str]) -> tuple[str, ...]:
    """The command line: `command` or the image's, then `args`; $(NAME) is replaced. Raises ConfigFault."""
    command, args = container.get("command") or [], container.get("args") or []
    if command:
        return tuple(expansion.expanded(word, env) for word in [*command, *args])
    if image is None:
        raise ConfigFault(
            f'the image "{container.get("image", "")}" is none of those that podscaler knows (docs/pods.md), and the '
            "container has no command: podscaler pulls no images, it runs programs of this machine",
            reason=IMAGE_NOT_KNOWN,
        )
    given = tuple(expansion.expanded(word, env) for word in args)
    return given if given and image.args_replace else image.argv + given


def port_plan(host: Host, container: Mapping[str, Any], ids: Identity | None) -> PortPlan:
    """Where the container's ports are."""
    image = host.resolve_image(container.get("image", ""))
    lowest = host.capabilities.lowest_port(ids.user if ids else None)
    translated = host.port_translator is not None
    return container_ports.port_plan(container, image, lowest_port=lowest, translated=translated)


def _port_trap(host: Host, pod: Mapping[str, Any], place: PodPlacement) -> PortTrap | None:
    """The trap for a container of `pod`; ports that it binds without declaring them are noted on the pod, too."""
    if host.port_translator is None:
        return None
    writer = PodWriter(host.registry, host.clock, dict(pod))

    def note(bound: Mapping[int, int]) -> None:
        host.background.start(writer.extend_port_map(bound), "port map of a pod")

    return host.port_translator.trap(place.pod_ip, note)


def _mountable(host: Host, container: Mapping[str, Any]) -> Mapping[str, Any]:
    """The container as far as this machine can mount what it wants.

    Every pod wants the token of its service account, most without any use for it: where nothing can be mounted they do
    without, all others are refused.
    """
    if not host.capabilities.mount_fault:
        return container
    if all(mount["mountPath"] == token_renewal.MOUNT_PATH for mount in container.get("volumeMounts") or ()):
        return {**container, "volumeMounts": []}
    raise ConfigFault(f"volumes cannot be mounted here: {host.capabilities.mount_fault}", reason=MOUNTS_NOT_POSSIBLE)


def _work_folder(host: Host, pod: Mapping[str, Any], container: Mapping[str, Any]) -> Path:
    return host.paths.work(pod["metadata"]["uid"], container["name"])


def _finish(
    host: Host,
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    *,
    sources: Mapping[str, str],
    launch: Launch,
    facts: NameFacts,
) -> Launch:
    """Make folders, mounts and cgroup; runs in a thread."""
    uid, name = pod["metadata"]["uid"], container["name"]
    folder, scratch = _work_folder(host, pod, container), host.paths.scratch(uid, name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if launch.identity is not None and host.capabilities.may_change_user:
        os.chown(folder, launch.identity.user, launch.identity.group)
    own = volumes.mounts(pod, container, sources, launch.env)
    wanted = (*own, *name_mounts.mounts(host, pod, name, facts, taken=[mount.target for mount in own]))
    if wanted:
        scratch.mkdir(parents=True, exist_ok=True)
    container_id = launch.env[process_identity.CONTAINER_VARIABLE]
    return replace(
        launch,
        mounts=wanted,
        scratch=str(scratch) if wanted else "",
        cgroup=_cgroup(host, container, container_id),
    )


def _cgroup(host: Host, container: Mapping[str, Any], container_id: str) -> str:
    if host.cgroups is None:
        return ""
    try:
        pids_max = host.capabilities.processes.of_container()
        return str(host.cgroups.make(container_id, container.get("resources") or {}, pids_max=pids_max))
    except OSError as error:
        raise ConfigFault(f"the container's limits cannot be set: {error.strerror}") from error
