"""The records of RoleBinding and ClusterRoleBinding (rbac.authorization.k8s.io/v1): who has which role.

Source: the API reference of rbac.authorization.k8s.io/v1; upstream's defaults and validation messages.
"""

from functools import partial
from typing import Any

from podscaler.api.kinds.policy.role import GROUP
from podscaler.api.machinery import names, printing
from podscaler.api.machinery.field import FieldError, invalid, not_supported, required
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

_ROLE_KINDS = {True: ("Role", "ClusterRole"), False: ("ClusterRole",)}
"""What a binding can give, by whether it is of a namespace."""
_SUBJECT_KINDS = ("ServiceAccount", "User", "Group")


def fill(binding: Object) -> None:
    """API defaults, in place: the group of the role, and of subjects that are users or groups."""
    reference = binding.setdefault("roleRef", {})
    if not reference.get("apiGroup"):
        reference["apiGroup"] = GROUP
    for subject in binding.get("subjects") or []:
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = GROUP


def faults(new: Object, old: Object | None, *, namespaced: bool) -> list[FieldError]:
    """What is wrong with a binding to be stored; its role cannot be changed."""
    found = _role_faults(new.get("roleRef") or {}, _ROLE_KINDS[namespaced])
    for index, subject in enumerate(new.get("subjects") or []):
        found += _subject_faults(subject, f"subjects[{index}]", namespaced=namespaced)
    if old is not None and (new.get("roleRef") or {}) != (old.get("roleRef") or {}):
        found.append(invalid("roleRef", _shown(new.get("roleRef") or {}), "field is immutable"))
    return found


def _shown(reference: Object) -> Object:
    """The reference as upstream's messages show it: its internal type has the Go names of fields."""
    return {
        "APIGroup": reference.get("apiGroup", ""),
        "Kind": reference.get("kind", ""),
        "Name": reference.get("name", ""),
    }


def _role_faults(reference: Object, kinds: tuple[str, ...]) -> list[FieldError]:
    found = []
    group, kind, name = (reference.get(key, "") for key in ("apiGroup", "kind", "name"))
    if group != GROUP:
        found.append(not_supported("roleRef.apiGroup", group, (GROUP,)))
    if kind not in kinds:
        found.append(not_supported("roleRef.kind", kind, kinds))
    if not name:
        return [*found, required("roleRef.name")]
    return found + [invalid("roleRef.name", name, text) for text in names.path_segment_faults(name)]


def _subject_faults(subject: Object, path: str, *, namespaced: bool) -> list[FieldError]:
    kind, name, group = (subject.get(key, "") for key in ("kind", "name", "apiGroup"))
    found = [] if name else [required(f"{path}.name")]
    if kind == "ServiceAccount":
        if name:
            found += [invalid(f"{path}.name", name, text) for text in names.dns_subdomain_faults(name)]
        if group:
            found.append(not_supported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            found.append(required(f"{path}.namespace"))
    elif kind not in _SUBJECT_KINDS:
        found.append(not_supported(f"{path}.kind", kind, _SUBJECT_KINDS))
    elif group != GROUP:
        found.append(not_supported(f"{path}.apiGroup", group, (GROUP,)))
    return found


def _row(binding: Object, now_ns: int) -> list[Any]:
    reference = binding.get("roleRef") or {}
    subjects: dict[str, list[str]] = {kind: [] for kind in _SUBJECT_KINDS}
    for subject in binding.get("subjects") or []:
        name = subject.get("name", "")
        shown = f"{subject.get('namespace', '')}/{name}" if subject.get("kind") == "ServiceAccount" else name
        subjects.setdefault(subject.get("kind", ""), []).append(shown)
    return [
        binding["metadata"].get("name", ""),
        f"{reference.get('kind', '')}/{reference.get('name', '')}",
        printing.created_age(binding, now_ns),
        ", ".join(subjects["User"]),
        ", ".join(subjects["Group"]),
        ", ".join(subjects["ServiceAccount"]),
    ]


_PRINTER = Printer(
    columns=(
        Column("Name", format="name", description="Name of the binding."),
        Column("Role", description="Kind and name of the role that is given."),
        Column("Age", description="Time since the binding was created."),
        Column("Users", description="The users who have the role.", priority=1),
        Column("Groups", description="The groups whose members have the role.", priority=1),
        Column("ServiceAccounts", description="The service accounts that have the role.", priority=1),
    ),
    row=_row,
)

ROLE_BINDING = Resource(
    group=GROUP,
    plural="rolebindings",
    singular="rolebinding",
    kind="RoleBinding",
    versions=(Version("v1", "rbac/v1.RoleBinding", default=fill),),
    storage_version="v1",
    strategy=Strategy(allows_create_on_update=True, validate=partial(faults, namespaced=True)),
    printer=_PRINTER,
)

CLUSTER_ROLE_BINDING = Resource(
    group=GROUP,
    plural="clusterrolebindings",
    singular="clusterrolebinding",
    kind="ClusterRoleBinding",
    versions=(Version("v1", "rbac/v1.ClusterRoleBinding", default=fill),),
    storage_version="v1",
    namespaced=False,
    strategy=Strategy(allows_create_on_update=True, validate=partial(faults, namespaced=False)),
    printer=_PRINTER,
)
