"""The records of RoleBinding and ClusterRoleBinding (rbac.authorization.k8s.io/v1), which bind a role to users.

ROLE_BINDING and CLUSTER_ROLE_BINDING, at the end, register the functions above them as hooks, which
`api.resource.resources` explains; `api.kinds.catalog` lists them for the API server. A new kind of subject:
_SUBJECT_KINDS, `_subject_errors`, and a column with its cell.

Source: the API reference of rbac.authorization.k8s.io/v1; kube-apiserver's defaults and validation messages.
"""

from functools import partial
from typing import Any

from podscaler.api.kinds.policy.role import GROUP
from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, not_supported
from podscaler.api.resource import checks, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_SUBJECT_KINDS = ("ServiceAccount", "User", "Group")


def set_defaults(binding: Object) -> None:
    """API defaults, in place: the group of the role, and of subjects that are users or groups."""
    role_ref = binding.setdefault("roleRef", {})
    if not role_ref.get("apiGroup"):
        role_ref["apiGroup"] = GROUP
    for subject in binding.get("subjects") or []:
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = GROUP


def validate(new: Object, old: Object | None, *, namespaced: bool) -> list[FieldError]:
    """The field errors of a binding to be stored; its role cannot be changed."""
    role_ref = new.get("roleRef") or {}
    errors = _role_ref_errors(role_ref, ("Role", "ClusterRole") if namespaced else ("ClusterRole",))
    errors += checks.each(new.get("subjects"), "subjects", partial(_subject_errors, namespaced=namespaced))
    is_same = old is None or role_ref == (old.get("roleRef") or {})
    return errors + checks.holds(is_same, "roleRef", _printed_role_ref(role_ref), checks.IMMUTABLE)


def _printed_role_ref(role_ref: Object) -> Object:
    """The reference as kube-apiserver's messages show it: with the Go names of fields."""
    return {
        "APIGroup": role_ref.get("apiGroup", ""),
        "Kind": role_ref.get("kind", ""),
        "Name": role_ref.get("name", ""),
    }


def _role_ref_errors(role_ref: Object, supported_kinds: tuple[str, ...]) -> list[FieldError]:
    """Field errors of `roleRef`: its group, its kind (one of `supported_kinds`), its name."""
    errors = checks.one_of(role_ref.get("apiGroup", ""), "roleRef.apiGroup", (GROUP,))
    errors += checks.one_of(role_ref.get("kind", ""), "roleRef.kind", supported_kinds)
    return errors + checks.required_form(role_ref.get("name", ""), "roleRef.name", names.path_segment_errors)


def _subject_errors(subject: Object, path: str, *, namespaced: bool) -> list[FieldError]:
    """Errors of a subject; ServiceAccounts have no group, users and groups have one."""
    subject_kind, name, group = (subject.get(key, "") for key in ("kind", "name", "apiGroup"))
    errors = checks.present(name, f"{path}.name")
    if subject_kind == "ServiceAccount":
        errors += checks.well_formed_if_set(name, f"{path}.name", names.dns_subdomain_errors)
        errors += checks.one_of(group, f"{path}.apiGroup", ("",))
        has_namespace = namespaced or subject.get("namespace")  # a RoleBinding's own namespace is the default
        return errors + checks.present(has_namespace, f"{path}.namespace")
    if subject_kind not in _SUBJECT_KINDS:
        return [*errors, not_supported(f"{path}.kind", subject_kind, _SUBJECT_KINDS)]
    return errors + checks.one_of(group, f"{path}.apiGroup", (GROUP,))


def _cells(binding: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: `KIND/NAME` of the role; users, groups and ServiceAccounts, joined by commas."""
    role_ref = binding.get("roleRef") or {}
    subjects_by_kind: dict[str, list[str]] = {kind: [] for kind in _SUBJECT_KINDS}
    for subject in binding.get("subjects") or []:
        name = subject.get("name", "")
        subject_text = f"{subject.get('namespace', '')}/{name}" if subject.get("kind") == "ServiceAccount" else name
        subjects_by_kind.setdefault(subject.get("kind", ""), []).append(subject_text)
    return [
        f"{role_ref.get('kind', '')}/{role_ref.get('name', '')}",
        ", ".join(subjects_by_kind["User"]),
        ", ".join(subjects_by_kind["Group"]),
        ", ".join(subjects_by_kind["ServiceAccount"]),
    ]


_PRINTER = tables.named(
    "binding",
    Column("Role", description="Kind and name of the role that is given."),
    tables.AGE,
    Column("Users", description="The users who have the role.", priority=1),
    Column("Groups", description="The groups whose members have the role.", priority=1),
    Column("ServiceAccounts", description="The service accounts that have the role.", priority=1),
    cells=_cells,
    note="",
)

ROLE_BINDING = Resource(
    group=GROUP,
    plural="rolebindings",
    kind="RoleBinding",
    versions=(Version("v1", "rbac/v1.RoleBinding", default=set_defaults),),
    strategy=Strategy(allows_create_on_update=True, validate=partial(validate, namespaced=True)),
    printer=_PRINTER,
)

CLUSTER_ROLE_BINDING = Resource(
    group=GROUP,
    plural="clusterrolebindings",
    kind="ClusterRoleBinding",
    versions=(Version("v1", "rbac/v1.ClusterRoleBinding", default=set_defaults),),
    namespaced=False,
    strategy=Strategy(allows_create_on_update=True, validate=partial(validate, namespaced=False)),
    printer=_PRINTER,
)
