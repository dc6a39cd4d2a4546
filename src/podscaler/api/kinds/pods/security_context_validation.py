"""Validates the security contexts of a pod and of its containers: ids, sysctls, seccomp and AppArmor profiles.

Called by `pod_validation` and `container_validation`.

Source: kube-apiserver's messages; the API reference of core/v1.
Differs: options for Windows are not checked, and privileged containers are allowed: their processes are ordinary here.
"""

import re
from collections.abc import Iterable
from functools import partial

from podscaler.api.machinery.field import FieldError, forbidden, invalid, not_supported, required
from podscaler.api.resource import checks, go_struct
from podscaler.api.resource.resources import Object

_ID_MAX = 2**31 - 1
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS = ("Default", "Unmasked")
_POD_CHOICES = (  # (field of a pod's security context, valid values)
    ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
    ("supplementalGroupsPolicy", ("Merge", "Strict")),
    ("seLinuxChangePolicy", ("MountOption", "Recursive")),
)
_SYSCTL_TEXT = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = re.compile(_SYSCTL_TEXT)
_SYSCTL_MAX = 253


def pod_errors(spec: Object, path: str) -> list[FieldError]:
    """The field errors of the security context of the pod spec at `path`, and of namespaces shared with the host."""
    context, field_path = spec.get("securityContext"), f"{path}.securityContext"
    if not context:
        return _host_errors(spec, path)
    errors = _id_errors(context, ("fsGroup", "runAsUser", "runAsGroup"), field_path)
    errors += checks.each(context.get("supplementalGroups"), f"{field_path}.supplementalGroups", _number_errors)
    errors += _host_errors(spec, path)
    errors += _sysctl_errors(context.get("sysctls") or [], f"{field_path}.sysctls")
    for name, choices in _POD_CHOICES:
        errors += checks.optional_one_of(context.get(name), f"{field_path}.{name}", choices)
    return errors + _profile_errors(context, field_path)


def container_errors(container: Object, path: str, *, has_host_users: bool) -> list[FieldError]:
    """The field errors of the security context of the container at `path`."""
    context, field_path = container.get("securityContext"), f"{path}.securityContext"
    if not context:
        return []
    errors = _id_errors(context, ("runAsUser", "runAsGroup"), field_path)
    mount = context.get("procMount")
    errors += checks.optional_one_of(mount, f"{field_path}.procMount", _PROC_MOUNTS)
    if mount == "Unmasked" and has_host_users:
        errors.append(invalid(f"{field_path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    if context.get("allowPrivilegeEscalation") is False:
        printed = go_struct.printed(context, "core/v1.SecurityContext")
        escalations = list(_escalations(context))
        message = "cannot set `allowPrivilegeEscalation` to false and"
        errors += [invalid(field_path, printed, f"{message} {escalation}") for escalation in escalations]
    return errors + _profile_errors(context, field_path)


def _escalations(context: Object) -> Iterable[str]:
    if context.get("privileged"):
        yield "`privileged` to true"
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or []):
        yield "`capabilities.Add` CAP_SYS_ADMIN"


def _id_errors(context: Object, names: tuple[str, ...], path: str) -> list[FieldError]:
    return [e for name in names for e in checks.optional(context.get(name), f"{path}.{name}", _number_errors)]


def _number_errors(number: int, path: str) -> list[FieldError]:
    return checks.holds(0 <= number <= _ID_MAX, path, number, f"must be between 0 and {_ID_MAX}, inclusive")


def _host_errors(spec: Object, path: str) -> list[FieldError]:
    """Errors of namespaces of the host that exclude each other."""
    errors = []
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        message = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{path}.shareProcessNamespace", value=True, detail=message))
    if spec.get("hostUsers") is False:
        shared = [name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
        errors += [forbidden(f"{path}.{name}", "when `hostUsers` is false") for name in shared]
    return errors


def _sysctl_errors(sysctls: list[Object], path: str) -> list[FieldError]:
    """Errors of the names of kernel parameters: their form, else that one is repeated."""
    errors = []
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        field_path, name = f"{path}[{index}].name", sysctl.get("name", "")
        malformed = checks.required_form(name, field_path, _sysctl_messages)
        repeated = checks.not_repeated(name, field_path, seen)
        errors += malformed or repeated
    return errors


def _sysctl_messages(name: str) -> list[str]:
    is_name = len(name) <= _SYSCTL_MAX and _SYSCTL.fullmatch(name)
    return [] if is_name else [f"must have at most {_SYSCTL_MAX} characters and match regex ^{_SYSCTL_TEXT}$"]


def _profile_errors(context: Object, path: str) -> list[FieldError]:
    errors = []
    for name, word in (("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")):
        errors += checks.optional(context.get(name), f"{path}.{name}", partial(_one_profile_errors, word))
    return errors


def _one_profile_errors(word: str, profile: Object, path: str) -> list[FieldError]:
    """Errors of a seccomp or AppArmor profile; `word` names which, for messages."""
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    field_path = f"{path}.localhostProfile"
    if not kind:
        return [required(f"{path}.type", f"type is required when {path.rpartition('.')[2]} is set")]
    if kind not in _PROFILES:
        return [not_supported(f"{path}.type", kind, _PROFILES)]
    if kind == "Localhost":
        return _local_errors(local, word, field_path)
    if local is None:
        return []
    printed = go_struct.printed(profile, "core/v1.SeccompProfile") if word == "seccomp" else local
    return [invalid(field_path, printed, f"can only be set when {word} type is Localhost")]


def _local_errors(local: str | None, word: str, path: str) -> list[FieldError]:
    """Errors of the path of a profile on the node: relative, and without `..`."""
    if not local:
        return [required(path, f"must be set when {word} type is Localhost")]
    errors = [invalid(path, local, "must be a relative path")] if local.startswith("/") else []
    if ".." in local.split("/"):
        errors.append(invalid(path, local, "must not contain '..'"))
    return errors
