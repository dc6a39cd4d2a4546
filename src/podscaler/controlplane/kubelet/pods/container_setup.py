"""Prepares the start of a container: its configuration, directories, mounts and cgroup.

`kubelet.pods.pod_worker` calls `prepare` before each start, as kubelet calls generateContainerConfig, and `find_user`
and `port_plan` for the pod's port map. Pods and containers are the API's JSON objects (core/v1 Pod, Container). A field
of the spec that this machine cannot satisfy is a ContainerConfigError with the reason. A new field of the container's
process: a field of `ContainerConfig`, set in `prepare`, and an entry of the launcher's plan if the launcher acts on it.

Source: pkg/kubelet/kuberuntime/kuberuntime_container.go (kubelet); SecurityContext and PodSecurityContext (API
reference).
Differs: without runAsUser a container runs as the user of `up`, unless its image is mapped with a user
(`launching.image_map`), or it has runAsNonRoot and `up` is root; without runAsGroup its group is the user's own, not 0.
Of the security contexts only users, groups and runAsNonRoot have an effect.
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
from podscaler.controlplane.kubelet.volumes import environment, host_names, name_files, service_variables, volumes
from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError, PodPlacement
from podscaler.controlplane.registry.registry import Object

# waiting reasons of containers that cannot be created, besides those of `references` and `volume_files`
IMAGE_NOT_KNOWN: Final = "ImageNotKnown"
MOUNTS_NOT_POSSIBLE: Final = "MountsNotPossible"
ALL_ADDRESSES: Final = "0.0.0.0"  # noqa: S104  passed to programs in a network namespace of their pod
MACHINE_FOLDERS: Final = ("/dev", "/proc", "/sys")
"""The folders of the machine in the root file system of an image."""
NON_ROOT_UID: Final = 65532
"""The user of containers with `runAsNonRoot` and without `runAsUser`, where `up` is root; `nonroot` of many images."""
SERVICE_ACCOUNT_MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""The path at which client libraries read the token of their service account."""


async def prepare(
    deps: Dependencies,
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    *,
    placement: PodPlacement,
    volume_paths: Mapping[str, str],
    container_id: str,
) -> ContainerConfig:
    """The configuration of one start of `container`; its directories and cgroup exist when this returns.

    Args:
        container: a core/v1 Container of `pod`.
        placement: the addresses and the node of the pod.
        volume_paths: the pod's volumes: name -> path (the result of `volumes.prepare`).
        container_id: the id of this start.

    Raises ContainerConfigError, OSError, QuantityError (a limit that the API server has not validated).
    """
    image = deps.resolve_image(container.get("image", ""))
    user = find_user(deps, pod, container)
    ports = port_plan(deps, pod, container, user)
    env = _container_environment(deps, pod, container, placement=placement, ports=ports, user=user)
    mountable = _without_impossible_mounts(deps, container)
    marks = {process_identity.INSTANCE_VARIABLE: deps.instance, process_identity.CONTAINER_VARIABLE: container_id}
    named_folder = _named_work_folder(deps, container, image)
    config = ContainerConfig(
        argv=argv(container, image, env),
        env=env | marks,
        cwd=named_folder or str(_own_work_folder(deps, pod, container)),
        has_own_folder=not named_folder,
        root=image.root if image else "",
        user=user,
        tty=bool(container.get("tty")),
        stdin=bool(container.get("stdin")),
        max_processes=deps.capabilities.process_limits.limit_of_user(user.uid if user else None),
        port_map=ports.mapped,
        port_trap=_port_trap(deps, pod, placement),
        programs=image.programs if image else {},
        network=deps.pod_networks.namespace_path(placement.pod_ip) if deps.pod_networks else "",
        hostname=host_names.host_name(pod),
    )
    if user is not None and image is not None and image.needs_interpreter and not deps.capabilities.mount_error:
        # the folders of Python may be below one that this user may not search, such as the home of `up`
        may_search = partial(_may_search, user)
        config = replace(config, revealed=await deps.threads.run(images.closed_folders, may_search))
    write_name_files = _name_files_writer(deps, pod, container, placement)
    config = await deps.threads.run(
        _with_mounts,
        deps,
        pod,
        mountable,
        volume_paths=volume_paths,
        config=config,
        write_name_files=write_name_files,
    )
    if deps.cgroups is None:
        return config
    return replace(config, cgroup=await deps.threads.run(_make_cgroup, deps, deps.cgroups, container, container_id))


def _named_work_folder(deps: Dependencies, container: Mapping[str, Any], image: ImageCommand | None) -> str:
    """The working directory that the container, or else its image, names; empty: it gets one of the node.

    Raises ContainerConfigError if the root file system of the image cannot be entered.
    """
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
        up_uid=capabilities.user,
        may_change_user=capabilities.may_change_user,
        image_uid=image.user if image else None,
    )


def container_user(
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    *,
    up_uid: int,
    may_change_user: bool,
    image_uid: int | None = None,
) -> ContainerUser | None:
    """The ids that the container runs with, None for those of `up`.

    Args:
        up_uid: the numeric id that `up` runs as.
        may_change_user: whether containers may run as another user.
        image_uid: the id of the image's user, None if it names none; used where the container has no runAsUser.

    Raises ContainerConfigError.
    """
    pod_context = pod["spec"].get("securityContext") or {}
    context = {**pod_context, **(container.get("securityContext") or {})}  # the container's fields win
    run_as_user, run_as_group = context.get("runAsUser", image_uid), context.get("runAsGroup")
    if context.get("runAsNonRoot") and run_as_user is None and up_uid == 0 and may_change_user:
        run_as_user = NON_ROOT_UID
    effective_uid = up_uid if run_as_user is None else run_as_user
    if context.get("runAsNonRoot") and effective_uid == 0:
        raise ContainerConfigError(f'container "{container["name"]}" has runAsNonRoot and would run as root')
    changes_user = run_as_user not in (None, up_uid)
    if not changes_user and run_as_group is None:
        return None
    if not may_change_user:
        setting = f"runAsUser {run_as_user}" if changes_user else f"runAsGroup {run_as_group}"
        raise ContainerConfigError(
            f"{setting} is not possible here: `podscaler up` runs as user {up_uid} and may not change users"
        )
    supplementary_groups = tuple(pod_context.get("supplementalGroups") or ())
    if pod_context.get("fsGroup") is not None:
        supplementary_groups += (pod_context["fsGroup"],)
    group = run_as_group if run_as_group is not None else primary_group(effective_uid)
    return ContainerUser(effective_uid, group, supplementary_groups)


def _may_search(user: ContainerUser, folder: Path) -> bool:
    """Whether the ids permit to search a folder of this machine; as in the kernel, the first class that fits decides.

    Blocks. Raises OSError.
    """
    folder_status = folder.stat()
    if user.uid in (0, folder_status.st_uid):
        return user.uid == 0 or bool(folder_status.st_mode & stat.S_IXUSR)
    if folder_status.st_gid in (user.gid, *user.groups):
        return bool(folder_status.st_mode & stat.S_IXGRP)
    return bool(folder_status.st_mode & stat.S_IXOTH)


def primary_group(uid: int) -> int:
    """The primary group of a user of this machine; for an unknown user, the group of the same number."""
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid


def _container_environment(
    deps: Dependencies,
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    *,
    placement: PodPlacement,
    ports: PortPlan,
    user: ContainerUser | None,
) -> dict[str, str]:
    """The environment of a container: a base, that of its image, the Services, and the variables of its spec.

    Raises ContainerConfigError.
    """
    image = deps.resolve_image(container.get("image", ""))
    has_root_of_image = image is not None and bool(image.root)
    search_path = DEFAULT_PATH if has_root_of_image else deps.settings.search_path
    if image is not None and image.brings_programs:
        search_path = f"{search_path}:{deps.paths.programs}"
    own_work_folder = str(_own_work_folder(deps, pod, container))
    base = {
        "PATH": search_path,
        "HOSTNAME": host_names.host_name(pod),
        "HOME": own_work_folder if user is None and not has_root_of_image else "/",
        "POD_IP": placement.pod_ip,
    }
    if image is not None:
        base |= image.env
        if has_own_network(deps, pod):
            base["LISTEN_ADDRESS"] = ALL_ADDRESSES
    if ports.port_variable is not None:
        base["PORT"] = str(ports.port_variable)
    namespace = pod["metadata"]["namespace"]
    services = service_variables.service_variables(
        _visible_services(deps, namespace),
        namespace=namespace,
        enable_service_links=pod["spec"].get("enableServiceLinks") is not False,
    )
    return environment.environment(pod, container, placement, find=deps.registry.find, base=base, services=services)


def _visible_services(deps: Dependencies, namespace: str) -> list[Object]:
    """The Services of the namespace, and the Service `kubernetes` of `default`."""
    own_services = deps.registry.list("services", namespace)
    kubernetes = deps.registry.find("services", "default", "kubernetes")
    if kubernetes is None or namespace == "default":
        return [*own_services]
    return [kubernetes, *own_services]


def argv(container: Mapping[str, Any], image: ImageCommand | None, env: Mapping[str, str]) -> tuple[str, ...]:
    """The command line: `command`, or the image's, then `args`, with $(NAME) expanded and programs of images replaced.

    Args:
        container: a core/v1 Container.
        image: the command of its image, None for an unknown image.
        env: the container's environment.

    Raises ContainerConfigError for a container without `command` whose image is unknown or has no entry point.
    """
    command, args = container.get("command") or [], container.get("args") or []
    if command:
        command_line = tuple(environment.expand_references(word, env) for word in [*command, *args])
        return image.replace_program(command_line) if image else command_line
    if image is not None and not image.argv:
        raise ContainerConfigError(f'the image "{container["image"]}" has no entry point, and the container no command')
    if image is None:
        raise ContainerConfigError(
            f'the image "{container.get("image", "")}" is none of those that podscaler knows (docs/pods.md), and the '
            "container has no command: podscaler pulls no images, it runs programs of this machine. `podscaler up "
            "--image NAME=PATH` names one",
            reason=IMAGE_NOT_KNOWN,
        )
    return image.with_args(tuple(environment.expand_references(word, env) for word in args))


def has_own_network(deps: Dependencies, pod: Mapping[str, Any]) -> bool:
    """Whether the pod has a network namespace of its own, in which every user may bind every port."""
    return deps.pod_networks is not None and not pod["spec"].get("hostNetwork")


def port_plan(
    deps: Dependencies, pod: Mapping[str, Any], container: Mapping[str, Any], user: ContainerUser | None
) -> PortPlan:
    """The ports of a container that runs as `user` (None: as `up`), and those that are bound in their place."""
    image = deps.resolve_image(container.get("image", ""))
    uid = user.uid if user else None
    lowest_port = 1 if has_own_network(deps, pod) else deps.capabilities.lowest_port(uid)
    translated = deps.port_translator is not None
    return container_ports.port_plan(container, image, lowest_port=lowest_port, translated=translated)


def _port_trap(deps: Dependencies, pod: Mapping[str, Any], placement: PodPlacement) -> PortTrap | None:
    """The port trap for a container of `pod`, None where ports are not translated.

    It adds undeclared ports that the container binds to the port map of the pod.
    """
    if deps.port_translator is None:
        return None
    writer = PodWriter(deps.registry, deps.clock, dict(pod))

    def on_bound(bound: Mapping[int, int]) -> None:
        deps.background.start(writer.extend_port_map(bound), "port map of a pod")

    return deps.port_translator.trap(placement.pod_ip, on_bound)


def _without_impossible_mounts(deps: Dependencies, container: Mapping[str, Any]) -> Mapping[str, Any]:
    """The container, without the mount of its token where this machine cannot mount anything.

    The token is mounted into every pod, and most do not use it. A container with other mounts cannot be created then.
    Raises ContainerConfigError.
    """
    if not deps.capabilities.mount_error:
        return container
    if all(mount["mountPath"] == SERVICE_ACCOUNT_MOUNT_PATH for mount in container.get("volumeMounts") or ()):
        return {**container, "volumeMounts": []}
    raise ContainerConfigError(
        f"volumes cannot be mounted here: {deps.capabilities.mount_error}", reason=MOUNTS_NOT_POSSIBLE
    )


def _own_work_folder(deps: Dependencies, pod: Mapping[str, Any], container: Mapping[str, Any]) -> Path:
    """The folder that the node makes for the container, its working directory if nothing else is named."""
    return deps.paths.work(pod["metadata"]["uid"], container["name"])


def _name_files_writer(
    deps: Dependencies, pod: Mapping[str, Any], container: Mapping[str, Any], placement: PodPlacement
) -> Callable[[Collection[str]], tuple[Mount, ...]] | None:
    """A function that writes resolv.conf and hosts, and returns their mounts; None if this machine cannot mount them.

    It takes the container's own mount paths, blocks, and raises OSError.
    """
    if deps.capabilities.mount_error:
        return None
    return partial(
        name_files.write,
        pod,
        deps.paths.name_files(pod["metadata"]["uid"], container["name"]),
        pod_ip=placement.pod_ip,
        nameserver=deps.settings.nameserver,
        services=() if deps.settings.nameserver else deps.registry.list("services"),
    )


def _with_mounts(
    deps: Dependencies,
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    *,
    volume_paths: Mapping[str, str],
    config: ContainerConfig,
    write_name_files: Callable[[Collection[str]], tuple[Mount, ...]] | None,
) -> ContainerConfig:
    """`config` with its mounts. The container's directories exist when this returns. Blocks.

    Args:
        volume_paths: volume name -> path on this machine.
        write_name_files: the result of `_name_files_writer`.

    Raises ContainerConfigError, OSError.
    """
    work_folder = _own_work_folder(deps, pod, container)
    work_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if config.user is not None and deps.capabilities.may_change_user:
        os.chown(work_folder, config.user.uid, config.user.gid)
    machine_mounts = tuple(Mount(path, path, read_only=False) for path in MACHINE_FOLDERS) if config.root else ()
    mounts = machine_mounts + volumes.prepare_mounts(pod, container, volume_paths, config.env)
    if write_name_files is not None:
        mounts += write_name_files([mount.target for mount in mounts])
    if not mounts:
        return config
    scratch = deps.paths.scratch(pod["metadata"]["uid"], container["name"])
    scratch.mkdir(parents=True, exist_ok=True)
    return replace(config, mounts=mounts, scratch=str(scratch))


def _make_cgroup(deps: Dependencies, cgroups: Cgroups, container: Mapping[str, Any], container_id: str) -> str:
    """Make the container's cgroup with its limits, and return its directory. Blocks.

    Raises ContainerConfigError, QuantityError.
    """
    pids_max = deps.capabilities.process_limits.limit_of_container()
    try:
        return str(cgroups.make(container_id, container.get("resources") or {}, pids_max=pids_max))
    except OSError as error:
        raise ContainerConfigError(f"the container's limits cannot be set: {error.strerror}") from error
