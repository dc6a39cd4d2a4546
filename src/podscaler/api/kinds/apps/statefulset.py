"""The records of StatefulSet (apps/v1), and of ControllerRevision, which stores one revision of a pod template.

RESOURCE and CONTROLLER_REVISION register the functions of this module as hooks, which `api.resource.resources`
explains; `api.kinds.catalog` lists them for the API server. A new field needs regenerated type facts (CONTRIBUTING.md),
its default and its validation here; a new column, a cell in `_cells`.

Source: recorded responses (tests/conformance/golden); the API reference of apps/v1. Differs: the data of a revision are
compared by their meaning; kube-apiserver compares their bytes.
"""

from typing import Any

from podscaler.api.kinds.apps import workload_spec
from podscaler.api.kinds.pods import pod_defaults, pod_warnings
from podscaler.api.kinds.volumes import claim_validation
from podscaler.api.machinery import int_or_percent, names, printing
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource import checks, go_struct, scale_mappings, semantics, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_LIMITED_COUNTS = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
"""Counts of the status that must not be above `replicas`."""
_COUNTS = ("replicas", *_LIMITED_COUNTS, "observedGeneration")
_MANAGEMENT_POLICIES = ("OrderedReady", "Parallel")
_RETENTION_FIELD = "persistentVolumeClaimRetentionPolicy"
_RETENTION_MEMBERS = ("whenDeleted", "whenScaled")
_RETENTION_POLICIES = ("Retain", "Delete")
_IMMUTABLE_FIELDS = ("selector", "serviceName", "podManagementPolicy")


def set_defaults(stateful_set: Object) -> None:
    """API defaults, in place: one replica, ordered pods, rolling update, retained claims, templates, status."""
    spec = stateful_set.setdefault("spec", {})
    spec.setdefault("serviceName", "")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
    retention = spec.setdefault(_RETENTION_FIELD, {})
    for field in _RETENTION_MEMBERS:
        retention[field] = retention.get(field) or "Retain"
    _set_update_strategy_defaults(spec.setdefault("updateStrategy", {}))
    pod_defaults.set_template_defaults(spec)
    for claim in spec.get("volumeClaimTemplates") or []:
        _set_claim_defaults(claim)
    status = stateful_set.setdefault("status", {})
    status.setdefault("replicas", 0)
    status.setdefault("availableReplicas", 0)


def _set_claim_defaults(claim: Object) -> None:
    """Sets the defaults of a claim template, in place."""
    claim.update(apiVersion="v1", kind="PersistentVolumeClaim")
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    claim.setdefault("status", {}).setdefault("phase", "Pending")


def _set_update_strategy_defaults(strategy: Object) -> None:
    """Sets the defaults of the update strategy, in place."""
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling_update = strategy.setdefault("rollingUpdate", {})
        rolling_update.setdefault("partition", 0)
        rolling_update.setdefault("maxUnavailable", 1)


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a StatefulSet to be stored."""
    spec = new["spec"]
    policy, path = spec.get("podManagementPolicy", ""), "spec.podManagementPolicy"
    errors = checks.holds(policy in _MANAGEMENT_POLICIES, path, policy, "must be 'OrderedReady' or 'Parallel'")
    errors += _strategy_errors(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    retention = spec.get(_RETENTION_FIELD) or {}
    for field in _RETENTION_MEMBERS:
        errors += checks.optional_one_of(retention.get(field), f"spec.{_RETENTION_FIELD}.{field}", _RETENTION_POLICIES)
    errors += workload_spec.count_errors(spec, "replicas", "minReadySeconds")
    errors += checks.not_negative((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start")
    errors += workload_spec.selector_errors(spec, "statefulset")
    old_spec = old["spec"] if old else None
    errors += workload_spec.template_errors(_with_claim_volumes(spec), old_spec=old_spec, kind="StatefulSet")
    return errors + (_change_errors(new, old) if old else _create_errors(spec))


def _create_errors(spec: Object) -> list[FieldError]:
    """The errors of serviceName and claim templates, which are validated only on create, as they cannot change."""
    service = spec.get("serviceName", "")
    errors = checks.well_formed_if_set(service, "spec.serviceName", names.dns_label_errors)
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or []):
        errors += claim_validation.validate_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    return errors


def warnings(new: Object, old: Object | None) -> list[str]:
    """The warnings for a StatefulSet: those about its template, and one about a negative revisionHistoryLimit."""
    messages = pod_warnings.of_template(new, old)
    if new["spec"].get("revisionHistoryLimit", 0) < 0:
        message = "a negative value retains all historical revisions; a value >= 0 is recommended"
        messages.append(f"spec.revisionHistoryLimit: {message}")
    return messages


def _with_claim_volumes(spec: Object) -> Object:
    """The spec with a volume in the pod template for each claim template: containers may mount them."""
    claim_names = [(claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or []]
    unique_claim_names = list(dict.fromkeys(claim_names))
    if not unique_claim_names:
        return spec
    template = spec.get("template") or {}
    pod_spec = template.get("spec") or {}
    other_volumes = [volume for volume in pod_spec.get("volumes") or [] if volume.get("name") not in unique_claim_names]
    volumes = other_volumes + [
        {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in unique_claim_names
    ]
    return {**spec, "template": {**template, "spec": {**pod_spec, "volumes": volumes}}}


def _strategy_errors(strategy: Object, path: str) -> list[FieldError]:
    """Errors of the update strategy: OnDelete without parameters of RollingUpdate, or RollingUpdate."""
    strategy_type, rolling_update = strategy.get("type", ""), strategy.get("rollingUpdate")
    if strategy_type == "OnDelete":
        if rolling_update is None:
            return []
        printed = go_struct.printed(rolling_update, "apps/v1.RollingUpdateStatefulSetStrategy")
        return [invalid(f"{path}.rollingUpdate", printed, "only allowed for updateStrategy 'RollingUpdate'")]
    if strategy_type != "RollingUpdate":
        printed = go_struct.printed(strategy, "apps/v1.StatefulSetUpdateStrategy")
        return [invalid(path, printed, "must be 'RollingUpdate' or 'OnDelete'")]
    return _rolling_errors(rolling_update or {}, f"{path}.rollingUpdate")


def _rolling_errors(rolling_update: Object, path: str) -> list[FieldError]:
    """Errors of the partition and of maxUnavailable, which is not zero."""
    partition, unavailable = rolling_update.get("partition", 0), rolling_update.get("maxUnavailable", 1)
    errors = checks.not_negative(partition, f"{path}.partition")
    errors += int_or_percent.amount_errors(unavailable, f"{path}.maxUnavailable")
    is_zero = int_or_percent.is_zero(unavailable)
    errors += checks.holds(not is_zero, f"{path}.maxUnavailable", unavailable, "cannot be 0")
    return errors + int_or_percent.over_100_percent_errors(unavailable, f"{path}.maxUnavailable")


def _change_errors(new: Object, old: Object) -> list[FieldError]:
    """Field errors of an update that changes immutable fields."""
    errors = [error for name in _IMMUTABLE_FIELDS for error in workload_spec.immutable_errors(name, new, old)]
    claims = new["spec"].get("volumeClaimTemplates") or []
    if not semantics.same(claims, old["spec"].get("volumeClaimTemplates") or []):
        printed = [go_struct.printed(claim, "core/v1.PersistentVolumeClaim") for claim in claims] or None
        errors.append(invalid("spec.volumeClaimTemplates", printed, checks.IMMUTABLE))
    return errors


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of the status of a StatefulSet."""
    status = new.get("status") or {}
    errors = workload_spec.status_count_errors(status, *_COUNTS)
    return errors + workload_spec.replica_count_errors(status, *_LIMITED_COUNTS)


def _cells(stateful_set: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: `READY/DESIRED` pods, containers."""
    spec, status = stateful_set["spec"], stateful_set.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [ready, *workload_spec.container_cells(stateful_set)]


RESOURCE = Resource(
    group="apps",
    plural="statefulsets",
    kind="StatefulSet",
    versions=(Version("v1", "apps/v1.StatefulSet", default=set_defaults),),
    short_names=("sts",),
    categories=("all",),
    has_status=True,
    scale=scale_mappings.BY_LABEL_SELECTOR,
    strategy=Strategy(
        prepare_create=status_subresource.start_with({"replicas": 0, "availableReplicas": 0}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=validate,
        validate_status=validate_status,
        warnings=warnings,
        has_generation=True,
    ),
    printer=tables.named(
        "stateful set",
        Column("Ready", description="How many pods are ready, of those asked for."),
        tables.AGE,
        *workload_spec.CONTAINER_COLUMNS,
        cells=_cells,
    ),
)


def _validate_revision(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a ControllerRevision to be stored; its data never change."""
    data, revision = new.get("data"), new.get("revision", 0)
    errors = [required("data", "data is mandatory")] if data is None and old is None else []
    if old is not None and not semantics.same(data, old.get("data")):
        errors.append(invalid("data", data, checks.IMMUTABLE))
    return errors + checks.not_negative(revision, "revision")


def _owner_text(revision: Object) -> str:
    """The column CONTROLLER of a revision: `KIND.GROUP/NAME` of its owner, such as `statefulset.apps/web`."""
    owners = revision["metadata"].get("ownerReferences") or []
    owner = next((reference for reference in owners if reference.get("controller")), None)
    if owner is None:
        return printing.NONE
    group = owner["apiVersion"].rpartition("/")[0]
    owner_kind = owner["kind"].lower()
    return f"{owner_kind}.{group}/{owner['name']}" if group else f"{owner_kind}/{owner['name']}"


CONTROLLER_REVISION = Resource(
    group="apps",
    plural="controllerrevisions",
    kind="ControllerRevision",
    versions=(Version("v1", "apps/v1.ControllerRevision"),),
    strategy=Strategy(validate=_validate_revision),
    printer=tables.named(
        "revision",
        Column("Controller", description="Whose template it keeps."),
        Column("Revision", description="Its place in the history; the highest is the newest."),
        cells=lambda revision, _now_ns: [_owner_text(revision), revision.get("revision", 0)],
    ),
)
