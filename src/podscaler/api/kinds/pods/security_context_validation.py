"""What is wrong with the security contexts of a pod and of its containers.

Called by `pod_validation` and `container_validation`.

Source: upstream's messages; the API reference of core/v1. Differs: options for Windows are not checked, and privileged
containers are let through: their processes are ordinary ones here.
"""

import re
from collections.abc import Iterable
from typing import Any

from podscaler.api.machinery.field import FieldError, duplicate, forbidden, invalid, not_supported, required
from podscaler.api.resource import go_struct
from podscaler.api.resource.resources import Object

_ID_MAX = 2**31 - 1
_ID_FAULT = f"must be between 0 and {_ID_MAX}, inclusive"
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS = ("Default", "Unmasked")
_POD_CHOICES = (
    ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
    ("supplementalGroupsPolicy", ("Merge", "Strict")),
    ("seLinuxChangePolicy", ("MountOption", "Recursive")),
)
_SYSCTL_TEXT = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = re.compile(_SYSCTL_TEXT)
_SYSCTL_MAX = 253


def pod_faults(spec: Object, path: str) -> list[FieldError]:
    """What is wrong with the security context of the pod spec at `path`, and with what it shares with the host."""
    context, place = spec.get("securityContext") or {}, f"{path}.securityContext"
    found = _id_faults(context, ("fsGroup", "runAsUser", "runAsGroup"), place)
    for index, group in enumerate(context.get("supplementalGroups") or []):
        found += _number_faults(group, f"{place}.supplementalGroups[{index}]")
    found += _host_faults(spec, path)
    found += _sysctl_faults(context.get("sysctls") or [], f"{place}.sysctls")
    for name, choices in _POD_CHOICES:
        found += _choice_faults(context.get(name), choices, f"{place}.{name}")
    return found + _profile_faults(context, place)


def container_faults(container: Object, path: str, *, has_host_users: bool) -> list[FieldError]:
    """What is wrong with the security context of the container at `path`."""
    context, place = container.get("securityContext") or {}, f"{path}.securityContext"
    found = _id_faults(context, ("runAsUser", "runAsGroup"), place)
    mount = context.get("procMount")
    found += _choice_faults(mount, _PROC_MOUNTS, f"{place}.procMount")
    if mount == "Unmasked" and has_host_users:
        found.append(invalid(f"{place}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    if context.get("allowPrivilegeEscalation") is False:
        shown = go_struct.shown(context, "core/v1.SecurityContext")
        what = list(_escalations(context))
        text = "cannot set `allowPrivilegeEscalation` to false and"
        found += [invalid(place, shown, f"{text} {each}") for each in what]
    return found + _profile_faults(context, place)


def _escalations(context: Object) -> Iterable[str]:
    if context.get("privileged"):
        yield "`privileged` to true"
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or []):
        yield "`capabilities.Add` CAP_SYS_ADMIN"


def _id_faults(context: Object, names: tuple[str, ...], path: str) -> list[FieldError]:
    given = [name for name in names if context.get(name) is not None]
    return [fault for name in given for fault in _number_faults(context[name], f"{path}.{name}")]


def _number_faults(number: int, path: str) -> list[FieldError]:
    return [] if 0 <= number <= _ID_MAX else [invalid(path, number, _ID_FAULT)]


def _choice_faults(value: Any, choices: tuple[str, ...], path: str) -> list[FieldError]:
    return [] if value is None or value in choices else [not_supported(path, value, choices)]


def _host_faults(spec: Object, path: str) -> list[FieldError]:
    found = []
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.append(invalid(f"{path}.shareProcessNamespace", value=True, detail=text))
    if spec.get("hostUsers") is False:
        shared = [name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
        found += [forbidden(f"{path}.{name}", "when `hostUsers` is false") for name in shared]
    return found


def _sysctl_faults(sysctls: list[Object], path: str) -> list[FieldError]:
    found = []
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        place, name = f"{path}[{index}].name", sysctl.get("name", "")
        if not name:
            found.append(required(place))
        elif len(name) > _SYSCTL_MAX or not _SYSCTL.fullmatch(name):
            text = f"must have at most {_SYSCTL_MAX} characters and match regex ^{_SYSCTL_TEXT}$"
            found.append(invalid(place, name, text))
        elif name in seen:
            found.append(duplicate(place, name))
        seen.add(name)
    return found


def _profile_faults(context: Object, path: str) -> list[FieldError]:
    found = []
    for name, word in (("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")):
        if (profile := context.get(name)) is not None:
            found += _one_profile_faults(profile, word, f"{path}.{name}")
    return found


def _one_profile_faults(profile: Object, word: str, path: str) -> list[FieldError]:
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    place = f"{path}.localhostProfile"
    if not kind:
        return [required(f"{path}.type", f"type is required when {path.rpartition('.')[2]} is set")]
    if kind not in _PROFILES:
        return [not_supported(f"{path}.type", kind, _PROFILES)]
    if kind == "Localhost":
        return _local_faults(local, word, place)
    if local is None:
        return []
    shown = go_struct.shown(profile, "core/v1.SeccompProfile") if word == "seccomp" else local
    return [invalid(place, shown, f"can only be set when {word} type is Localhost")]


def _local_faults(local: str | None, word: str, path: str) -> list[FieldError]:
    if not local:
        return [required(path, f"must be set when {word} type is Localhost")]
    found = [invalid(path, local, "must be a relative path")] if local.startswith("/") else []
    if ".." in local.split("/"):
        found.append(invalid(path, local, "must not contain '..'"))
    return found
