"""Prepares the start of a container: its configuration, directories, mounts and cgroup.

`pod_worker` calls `prepare` before each start, as kubelet calls generateContainerConfig. What the spec asks for and
this machine cannot provide is a ContainerConfigError with the reason.

Source: pkg/kubelet/kuberuntime/kuberuntime_container.go (kubelet); SecurityContext and PodSecurityContext (API
reference).
Differs: without runAsUser a container runs as the user of `up`, not as the image's; without runAsGroup its group is
that user's own, not 0.
"""

import os
import pwd
import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from podscaler.controlplane.kubelet.containers.dependencies import Dependencies
from podscaler.controlplane.kubelet.launching import container_ports, images
from podscaler.controlplane.kubelet.launching.container_config import ContainerConfig, ContainerUser, Mount
from podscaler.controlplane.kubelet.launching.container_ports import PortPlan
from podscaler.controlplane.kubelet.launching.images import ImageCommand
from podscaler.controlplane.kubelet.launching.port_translation import PortTrap
from podscaler.controlplane.kubelet.pods.pod_writer import PodWriter
from podscaler.controlplane.kubelet.processes import process_identity
from podscaler.controlplane.kubelet.processes.cgroups import Cgroups
from podscaler.controlplane.kubelet.processes.settings import DEFAULT_PATH
from podscaler.controlplane.kubelet.volumes import environment, name_files, service_variables, volumes
from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError, PodPlacement
from podscaler.controlplane.registry.registry import Object

IMAGE_NOT_KNOWN: Final = "ImageNotKnown"
MOUNTS_NOT_POSSIBLE: Final = "MountsNotPossible"
ALL_ADDRESSES: Final = "0.0.0.0"  # noqa: S104  told to programs in a network namespace of their pod
HOST_NAME_MAX: Final = 63
MACHINE_FOLDERS: Final = ("/dev", "/proc", "/sys")
"""The folders of the machine in the root file system of an image."""
NON_ROOT_USER: Final = 65532
"""The user of containers with `runAsNonRoot` and without `runAsUser`, where `up` is root; `nonroot` of many images."""
SERVICE_ACCOUNT_MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""The path at which client libraries read the token of their service account."""


async def prepare(
    deps: Dependencies,
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    *,
    place: PodPlacement,
    sources: Mapping[str, str],
    container_id: str,
) -> ContainerConfig:
    """The configuration of one start of `container`; its directories and cgroup exist when this returns.

    Args:
        container: a core/v1 Container of `pod`.
        sources: the paths of the pod's volumes (`volumes.prepare`).
        container_id: the id of this start.

    Raises ContainerConfigError, OSError.
    """
    image = deps.resolve_image(container.get("image", ""))
    user = find_user(deps, pod, container)
    ports = port_plan(deps, pod, container, user)
    env = _environment(deps, pod, container, place=place, ports=ports, user=user)
    container = _mountable(deps, container)
    marks = {process_identity.INSTANCE_VARIABLE: deps.instance, process_identity.CONTAINER_VARIABLE: container_id}
    folder = _image_folder(deps, container, image)
    config = ContainerConfig(
        argv=argv(container, image, env),
        env=env | marks,
        cwd=folder or str(_work_folder(deps, pod, container)),
        has_own_folder=not folder,
        root=image.root if image else "",
        user=user,
        tty=bool(container.get("tty")),
        stdin=bool(container.get("stdin")),
        max_processes=deps.capabilities.processes.limit_of_user(user.uid if user else None),
        port_map=ports.mapped,
        port_trap=_port_trap(deps, pod, place),
        programs=image.programs if image else {},
        network=deps.pod_networks.find(place.pod_ip) if deps.pod_networks else "",
        hostname=host_name(pod),
    )
    if user is not None and image is not None and image.needs_interpreter and not deps.capabilities.mount_error:
        may_search = partial(_may_search, user)
        config = replace(config, revealed=await deps.threads.run(images.closed_folders, may_search))
    names = _name_mounts(deps, pod, container, place)
    config = await deps.threads.run(_with_mounts, deps, pod, container, sources=sources, config=config, names=names)
    if deps.cgroups is None:
        return config
    return replace(config, cgroup=await deps.threads.run(_make_cgroup, deps, deps.cgroups, container, container_id))


def _image_folder(deps: Dependencies, container: Mapping[str, Any], image: ImageCommand | None) -> str:
    """The working directory that container or image name; empty: one of the node. Raises ContainerConfigError."""
    if image is None or not image.root:
        return container.get("workingDir") or (image.working_dir if image else "")
    if not deps.capabilities.may_change_user or deps.capabilities.mount_error:
        reason = deps.capabilities.mount_error or "`podscaler up` does not run as root"
        raise ContainerConfigError(f"the root file system of the image cannot be entered: {reason}")
    return container.get("workingDir") or image.working_dir or "/"


def find_user(deps: Dependencies, pod: Mapping[str, Any], container: Mapping[str, Any]) -> ContainerUser | None:
    """The ids that the container runs with, None for those of `up`. Raises ContainerConfigError."""
    capabilities = deps.capabilities
    image = deps.resolve_image(container.get("image", ""))
    return container_user(
        pod,
        container,
        user=capabilities.user,
        may_change=capabilities.may_change_user,
        of_image=image.user if image else None,
    )


def container_user(
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    *,
    user: int,
    may_change: bool,
    of_image: int | None = None,
) -> ContainerUser | None:
    """The ids that the container runs with, None for those of `up`.

    Args:
        user: the numeric id that `up` runs as.
        may_change: whether containers may run as another user.
        of_image: the id of the image's user, where the container names none.

    Raises ContainerConfigError.
    """
    pod_context = pod["spec"].get("securityContext") or {}
    context = {**pod_context, **(container.get("securityContext") or {})}
    wanted, group = context.get("runAsUser", of_image), context.get("runAsGroup")
    if context.get("runAsNonRoot") and wanted is None and user == 0 and may_change:
        wanted = NON_ROOT_USER
    effective = user if wanted is None else wanted
    if context.get("runAsNonRoot") and effective == 0:
        raise ContainerConfigError(f'container "{container["name"]}" has runAsNonRoot and would run as root')
    if wanted in (None, user) and group is None:
        return None
    if not may_change:
        setting = f"runAsUser {wanted}" if wanted not in (None, user) else f"runAsGroup {group}"
        raise ContainerConfigError(
            f"{setting} is not possible here: `podscaler up` runs as user {user} and may not change users"
        )
    groups = tuple(pod_context.get("supplementalGroups") or ())
    if pod_context.get("fsGroup") is not None:
        groups += (pod_context["fsGroup"],)
    return ContainerUser(effective, group if group is not None else own_group(effective), groups)


def _may_search(user: ContainerUser, folder: Path) -> bool:
    """Whether the ids permit to search a folder of this machine. Blocks. Raises OSError."""
    folder_status = folder.stat()
    if user.uid in (0, folder_status.st_uid):
        return user.uid == 0 or bool(folder_status.st_mode & stat.S_IXUSR)
    if folder_status.st_gid in (user.gid, *user.groups):
        return bool(folder_status.st_mode & stat.S_IXGRP)
    return bool(folder_status.st_mode & stat.S_IXOTH)


def own_group(user: int) -> int:
    """The primary group of a user of this machine; for an unknown user, the group of the same number."""
    try:
        return pwd.getpwuid(user).pw_gid
    except KeyError:
        return user


def _environment(
    deps: Dependencies,
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    *,
    place: PodPlacement,
    ports: PortPlan,
    user: ContainerUser | None,
) -> dict[str, str]:
    """The environment of a container: a base, that of its image, the Services, and what its spec says."""
    image = deps.resolve_image(container.get("image", ""))
    search_path = DEFAULT_PATH if image and image.root else deps.settings.search_path
    folders = [search_path, *([str(deps.paths.programs)] if image and image.brings_programs else [])]
    base = {
        "PATH": ":".join(folders),
        "HOSTNAME": host_name(pod),
        "HOME": str(_work_folder(deps, pod, container)) if user is None and not (image and image.root) else "/",
        "POD_IP": place.pod_ip,
        **(image.env if image else {}),
        **({"LISTEN_ADDRESS": ALL_ADDRESSES} if image and has_own_network(deps, pod) else {}),
        **({} if ports.port_variable is None else {"PORT": str(ports.port_variable)}),
    }
    namespace = pod["metadata"]["namespace"]
    links = pod["spec"].get("enableServiceLinks", True) is not False
    listed = _services(deps, namespace)
    services = service_variables.service_variables(listed, namespace=namespace, links=links)
    return environment.environment(pod, container, place, find=deps.registry.find, base=base, services=services)


def _services(deps: Dependencies, namespace: str) -> list[Object]:
    """The Services of the namespace, and the Service `kubernetes` of `default`."""
    listed = deps.registry.list("services", namespace)
    kubernetes = deps.registry.find("services", "default", "kubernetes")
    return [*listed] if kubernetes is None or namespace == "default" else [kubernetes, *listed]


def argv(container: Mapping[str, Any], image: ImageCommand | None, env: Mapping[str, str]) -> tuple[str, ...]:
    """The command line: `command`, or the image's, then `args`, with $(NAME) expanded and programs of images replaced.

    Raises ContainerConfigError for an unknown image without a command.
    """
    command, args = container.get("command") or [], container.get("args") or []
    if command:
        line = tuple(environment.expanded(word, env) for word in [*command, *args])
        return image.replace_program(line) if image else line
    if image is not None and not image.argv:
        raise ContainerConfigError(f'the image "{container["image"]}" has no entry point, and the container no command')
    if image is None:
        raise ContainerConfigError(
            f'the image "{container.get("image", "")}" is none of those that podscaler knows (docs/pods.md), and the '
            "container has no command: podscaler pulls no images, it runs programs of this machine. `podscaler up "
            "--image NAME=PATH` names one",
            reason=IMAGE_NOT_KNOWN,
        )
    return image.with_args(tuple(environment.expanded(word, env) for word in args))


def has_own_network(deps: Dependencies, pod: Mapping[str, Any]) -> bool:
    """Whether the pod has a network namespace of its own, in which every user may bind every port."""
    return deps.pod_networks is not None and not pod["spec"].get("hostNetwork")


def host_name(pod: Mapping[str, Any]) -> str:
    """The pod's host name; a long one is cut, as kubelet does it."""
    name = str(pod["spec"].get("hostname") or pod["metadata"]["name"])
    return name if len(name) <= HOST_NAME_MAX else name[:HOST_NAME_MAX].rstrip("-.")


def port_plan(
    deps: Dependencies, pod: Mapping[str, Any], container: Mapping[str, Any], user: ContainerUser | None
) -> PortPlan:
    """The ports of a container that runs as `user` (None: as `up`)."""
    image = deps.resolve_image(container.get("image", ""))
    lowest = 1 if has_own_network(deps, pod) else deps.capabilities.lowest_port(user.uid if user else None)
    translated = deps.port_translator is not None
    return container_ports.port_plan(container, image, lowest_port=lowest, translated=translated)


def _port_trap(deps: Dependencies, pod: Mapping[str, Any], place: PodPlacement) -> PortTrap | None:
    """The port trap for a container of `pod`; it adds undeclared ports that the container binds to the port map."""
    if deps.port_translator is None:
        return None
    writer = PodWriter(deps.registry, deps.clock, dict(pod))

    def on_bound(bound: Mapping[int, int]) -> None:
        deps.background.start(writer.extend_port_map(bound), "port map of a pod")

    return deps.port_translator.trap(place.pod_ip, on_bound)


def _mountable(deps: Dependencies, container: Mapping[str, Any]) -> Mapping[str, Any]:
    """The container, without the mount of its token where this machine cannot mount anything.

    The token is mounted into every pod, and most do not use it. A container with other mounts cannot be created then.
    """
    if not deps.capabilities.mount_error:
        return container
    if all(mount["mountPath"] == SERVICE_ACCOUNT_MOUNT_PATH for mount in container.get("volumeMounts") or ()):
        return {**container, "volumeMounts": []}
    raise ContainerConfigError(
        f"volumes cannot be mounted here: {deps.capabilities.mount_error}", reason=MOUNTS_NOT_POSSIBLE
    )


def _work_folder(deps: Dependencies, pod: Mapping[str, Any], container: Mapping[str, Any]) -> Path:
    return deps.paths.work(pod["metadata"]["uid"], container["name"])


def _name_mounts(
    deps: Dependencies, pod: Mapping[str, Any], container: Mapping[str, Any], place: PodPlacement
) -> Callable[[Collection[str]], tuple[Mount, ...]] | None:
    """A function from the container's own mount paths to the mounts of `name_files`; None if none is possible."""
    if deps.capabilities.mount_error:
        return None
    return partial(
        name_files.mounts,
        pod,
        deps.paths.names(pod["metadata"]["uid"], container["name"]),
        pod_ip=place.pod_ip,
        nameserver=deps.settings.nameserver,
        services=() if deps.settings.nameserver else deps.registry.list("services"),
    )


def _with_mounts(
    deps: Dependencies,
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    *,
    sources: Mapping[str, str],
    config: ContainerConfig,
    names: Callable[[Collection[str]], tuple[Mount, ...]] | None,
) -> ContainerConfig:
    """`config` with its mounts, whose directories are created; `names` adds those of `name_files`. Blocks."""
    folder = _work_folder(deps, pod, container)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if config.user is not None and deps.capabilities.may_change_user:
        os.chown(folder, config.user.uid, config.user.gid)
    machine = () if not config.root else tuple(Mount(path, path, read_only=False) for path in MACHINE_FOLDERS)
    mounts = machine + volumes.mounts(pod, container, sources, config.env)
    if names is not None:
        mounts += names([mount.target for mount in mounts])
    if not mounts:
        return config
    scratch = deps.paths.scratch(pod["metadata"]["uid"], container["name"])
    scratch.mkdir(parents=True, exist_ok=True)
    return replace(config, mounts=mounts, scratch=str(scratch))


def _make_cgroup(deps: Dependencies, cgroups: Cgroups, container: Mapping[str, Any], container_id: str) -> str:
    """The directory of the container's cgroup, with its limits set. Blocks."""
    pids_max = deps.capabilities.processes.limit_of_container()
    try:
        return str(cgroups.make(container_id, container.get("resources") or {}, pids_max=pids_max))
    except OSError as error:
        raise ContainerConfigError(f"the container's limits cannot be set: {error.strerror}") from error
