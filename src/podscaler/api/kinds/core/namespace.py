"""The records of Namespace and ServiceAccount (core/v1).

RESOURCE and SERVICE_ACCOUNT register the functions of this module as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists them for the API server. `podscaler.controlplane.controllers.gc.namespace_deletion` deletes
the objects of a namespace that is Terminating. A new field needs regenerated type facts (CONTRIBUTING.md) and its
default here.

Source: recorded responses (tests/conformance/golden); the API reference of core/v1.
"""

from podscaler.api.machinery.field import FieldError, invalid
from podscaler.api.resource import status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_NAME_LABEL = "kubernetes.io/metadata.name"
_PERMANENT_NAMES = ("default", "kube-system", "kube-public")
"""The namespaces that cannot be deleted. Source: the admission plugin NamespaceLifecycle."""


def set_defaults(namespace: Object) -> None:
    """Sets the label with the name, and the default phase, in place."""
    status = namespace.get("status") or {}
    namespace["status"] = {**status, "phase": status.get("phase") or "Active"}
    metadata = namespace.setdefault("metadata", {})
    if name := metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), _NAME_LABEL: name}


def _prepare_create(new: Object) -> None:
    """Sets the label with the name, the finalizer `kubernetes` and the phase Active, in place."""
    set_defaults(new)  # the name may have been generated after defaulting
    finalizers = (new.get("spec") or {}).get("finalizers") or []
    new["spec"] = {"finalizers": finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]}
    new["status"] = {"phase": "Active"}


def _prepare_update(new: Object, old: Object) -> None:
    """Keeps the status and `spec.finalizers`, in place."""
    status_subresource.keep_status(new, old)
    new["spec"] = {**(new.get("spec") or {}), "finalizers": (old.get("spec") or {}).get("finalizers") or []}


def _prepare_finalize(new: Object, old: Object) -> None:
    """Keeps everything of the stored namespace but `spec.finalizers`, in place: subresource `finalize`."""
    finalizers = (new.get("spec") or {}).get("finalizers") or []
    status_subresource.keep_status(new, old)
    new["spec"] = {**(old.get("spec") or {}), "finalizers": finalizers}


def _prepare_delete(namespace: Object) -> None:
    """Sets the phase of a namespace whose deletion begins, in place."""
    namespace.setdefault("status", {})["phase"] = "Terminating"
    namespace["metadata"].pop("deletionGracePeriodSeconds", None)  # kube-apiserver sets none on namespaces


def _has_spec_finalizers(namespace: Object) -> bool:
    """The hook `is_held`: a namespace stays until the subresource `finalize` has cleared spec.finalizers."""
    return bool((namespace.get("spec") or {}).get("finalizers"))


def validate_status(new: Object, old: Object | None) -> list[FieldError]:
    """The error of a phase that does not agree with `deletionTimestamp`."""
    phase = (new.get("status") or {}).get("phase", "")
    is_being_deleted = old is not None and "deletionTimestamp" in old["metadata"]
    expected_phase, deletion_time_verb = ("Terminating", "is not") if is_being_deleted else ("Active", "is")
    if phase in ("", expected_phase):
        return []
    return [
        invalid(
            "status.Phase", phase, f"may only be '{expected_phase}' if `deletionTimestamp` {deletion_time_verb} empty"
        )
    ]


def _phase(namespace: Object) -> str:
    return str((namespace.get("status") or {}).get("phase", ""))


RESOURCE = Resource(
    group="",
    plural="namespaces",
    kind="Namespace",
    versions=(Version("v1", "core/v1.Namespace", default=set_defaults),),
    namespaced=False,
    short_names=("ns",),
    has_status=True,
    fields=lambda namespace: {"status.phase": _phase(namespace)},
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status_update=status_subresource.keep_spec,
        prepare_delete=_prepare_delete,
        validate_status=validate_status,
        is_held=_has_spec_finalizers,
        permanent_names=dict.fromkeys(_PERMANENT_NAMES, "this namespace may not be deleted"),
        prepare_subresource_update={"finalize": _prepare_finalize},
    ),
    printer=tables.named(
        "namespace",
        Column("Status", description="Active, or Terminating while its objects are being deleted."),
        cells=lambda namespace, _now_ns: [_phase(namespace)],
        note="",
    ),
)

SERVICE_ACCOUNT = Resource(
    group="",
    plural="serviceaccounts",
    kind="ServiceAccount",
    returns_deleted_object=True,
    versions=(Version("v1", "core/v1.ServiceAccount"),),
    short_names=("sa",),
    printer=tables.named("service account"),
)
