"""Validates the security contexts of a pod and of its containers: ids, sysctls, seccomp and AppArmor profiles.

Called by `pod_validation` and `container_validation`. A new field: a check in `pod_errors` or `container_errors`. An
`Object` is the part of an API object that the name of the argument says, as a JSON object; `path` is its path in
errors.

Source: kube-apiserver's messages; the API reference of core/v1.
Differs: options for Windows are not checked; privileged containers are allowed, as their processes get no privileges.
"""

import re
from collections.abc import Iterable
from functools import partial

from podscaler.api.machinery.field import FieldError, forbidden, invalid, not_supported, required
from podscaler.api.resource import checks, go_struct
from podscaler.api.resource.resources import Object

_ID_MAX = 2**31 - 1
_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS = ("Default", "Unmasked")
_POD_CHOICES = (  # (field of a pod's security context, valid values); a new such field: an entry here
    ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
    ("supplementalGroupsPolicy", ("Merge", "Strict")),
    ("seLinuxChangePolicy", ("MountOption", "Recursive")),
)
_SYSCTL_TEXT = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = re.compile(_SYSCTL_TEXT)
_SYSCTL_MAX_CHARACTERS = 253


def pod_errors(spec: Object, path: str) -> list[FieldError]:
    """The field errors of the security context of the pod spec at `path`, and of namespaces shared with the host."""
    context, field_path = spec.get("securityContext"), f"{path}.securityContext"
    if not context:
        return _host_errors(spec, path)
    errors = _id_errors(context, ("fsGroup", "runAsUser", "runAsGroup"), field_path)
    errors += checks.each(context.get("supplementalGroups"), f"{field_path}.supplementalGroups", _id_number_errors)
    errors += _host_errors(spec, path)
    errors += _sysctl_errors(context.get("sysctls") or [], f"{field_path}.sysctls")
    for name, choices in _POD_CHOICES:
        errors += checks.optional_one_of(context.get(name), f"{field_path}.{name}", choices)
    return errors + _profile_errors(context, field_path)


def container_errors(container: Object, path: str, *, has_host_users: bool) -> list[FieldError]:
    """The field errors of a container's security context; `has_host_users`: `hostUsers` of the pod is not false."""
    context, field_path = container.get("securityContext"), f"{path}.securityContext"
    if not context:
        return []
    errors = _id_errors(context, ("runAsUser", "runAsGroup"), field_path)
    proc_mount = context.get("procMount")
    errors += checks.optional_one_of(proc_mount, f"{field_path}.procMount", _PROC_MOUNTS)
    if proc_mount == "Unmasked" and has_host_users:
        errors.append(invalid(f"{field_path}.procMount", proc_mount, "`hostUsers` must be false to use `Unmasked`"))
    if context.get("allowPrivilegeEscalation") is False:
        printed = go_struct.printed(context, "core/v1.SecurityContext")
        escalations = list(_escalations(context))
        message = "cannot set `allowPrivilegeEscalation` to false and"
        errors += [invalid(field_path, printed, f"{message} {escalation}") for escalation in escalations]
    return errors + _profile_errors(context, field_path)


def _escalations(context: Object) -> Iterable[str]:
    """Yields, for a message, each setting that allows privileges in spite of `allowPrivilegeEscalation: false`."""
    if context.get("privileged"):
        yield "`privileged` to true"
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or []):
        yield "`capabilities.Add` CAP_SYS_ADMIN"


def _id_errors(context: Object, fields: tuple[str, ...], path: str) -> list[FieldError]:
    """Field errors of user and group ids in the named fields of a security context."""
    errors = []
    for field in fields:
        errors += checks.optional(context.get(field), f"{path}.{field}", _id_number_errors)
    return errors


def _id_number_errors(number: int, path: str) -> list[FieldError]:
    """The error of an id that is no int32 or negative."""
    return checks.holds(0 <= number <= _ID_MAX, path, number, f"must be between 0 and {_ID_MAX}, inclusive")


def _host_errors(spec: Object, path: str) -> list[FieldError]:
    """Errors of namespaces of the host that exclude each other."""
    errors = []
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        message = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{path}.shareProcessNamespace", value=True, detail=message))
    if spec.get("hostUsers") is False:
        shared_namespaces = [name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
        errors += [forbidden(f"{path}.{name}", "when `hostUsers` is false") for name in shared_namespaces]
    return errors


def _sysctl_errors(sysctls: list[Object], path: str) -> list[FieldError]:
    """Errors of the names of kernel parameters: their form, else that one is repeated."""
    errors = []
    earlier_names: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        field_path, name = f"{path}[{index}].name", sysctl.get("name", "")
        form_errors = checks.required_form(name, field_path, _sysctl_messages)
        repetition_errors = checks.not_repeated(name, field_path, earlier_names)
        errors += form_errors or repetition_errors
    return errors


def _sysctl_messages(name: str) -> list[str]:
    """The message about an invalid name of a kernel parameter."""
    if len(name) <= _SYSCTL_MAX_CHARACTERS and _SYSCTL.fullmatch(name):
        return []
    return [f"must have at most {_SYSCTL_MAX_CHARACTERS} characters and match regex ^{_SYSCTL_TEXT}$"]


def _profile_errors(context: Object, path: str) -> list[FieldError]:
    """Field errors of the seccomp and AppArmor profiles of a security context."""
    errors = []
    for field, technology in (("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")):
        errors += checks.optional(context.get(field), f"{path}.{field}", partial(_one_profile_errors, technology))
    return errors


def _one_profile_errors(technology: str, profile: Object, path: str) -> list[FieldError]:
    """Field errors of a profile; `technology` is `seccomp` or `AppArmor`, for messages."""
    profile_type, local_path = profile.get("type", ""), profile.get("localhostProfile")
    field_path = f"{path}.localhostProfile"
    if not profile_type:
        return [required(f"{path}.type", f"type is required when {path.rpartition('.')[2]} is set")]
    if profile_type not in _PROFILE_TYPES:
        return [not_supported(f"{path}.type", profile_type, _PROFILE_TYPES)]
    if profile_type == "Localhost":
        return _local_errors(local_path, technology, field_path)
    if local_path is None:
        return []
    # upstream shows the whole profile of seccomp, and the path of one of AppArmor
    shown_value = go_struct.printed(profile, "core/v1.SeccompProfile") if technology == "seccomp" else local_path
    return [invalid(field_path, shown_value, f"can only be set when {technology} type is Localhost")]


def _local_errors(local_path: str | None, technology: str, path: str) -> list[FieldError]:
    """Errors of the path of a profile on the node: relative, and without `..`."""
    if not local_path:
        return [required(path, f"must be set when {technology} type is Localhost")]
    errors = [invalid(path, local_path, "must be a relative path")] if local_path.startswith("/") else []
    if ".." in local_path.split("/"):
        errors.append(invalid(path, local_path, "must not contain '..'"))
    return errors
