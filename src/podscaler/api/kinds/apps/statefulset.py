"""The record of StatefulSet (apps/v1).

Source: golden captures; the API reference of apps/v1.
"""

from typing import Any

from podscaler.api.kinds.apps import workload_spec
from podscaler.api.kinds.pods import pod_defaults, pod_warnings
from podscaler.api.kinds.volumes import claim_validation
from podscaler.api.machinery import int_or_percent, names, printing
from podscaler.api.machinery.field import FieldError, invalid, not_supported
from podscaler.api.resource import go_struct, scaling, semantics, status_subresource
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

_COUNTS = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration")
_FIXED = ("selector", "serviceName", "podManagementPolicy")


def fill(stateful_set: Object) -> None:
    """API defaults, in place."""
    spec = stateful_set.setdefault("spec", {})
    spec.setdefault("serviceName", "")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for when in ("whenDeleted", "whenScaled"):
        retention[when] = retention.get(when) or "Retain"
    _fill_update_strategy(spec.setdefault("updateStrategy", {}))
    pod_defaults.fill_template(spec)
    for claim in spec.get("volumeClaimTemplates") or []:
        _fill_claim(claim)
    status = stateful_set.setdefault("status", {})
    status.setdefault("replicas", 0)
    status.setdefault("availableReplicas", 0)


def _fill_claim(claim: Object) -> None:
    claim.update(apiVersion="v1", kind="PersistentVolumeClaim")
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    claim.setdefault("status", {}).setdefault("phase", "Pending")


def _fill_update_strategy(strategy: Object) -> None:
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("partition", 0)
        rolling.setdefault("maxUnavailable", 1)


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a StatefulSet to be stored."""
    spec = new["spec"]
    found = _management_faults(spec.get("podManagementPolicy", ""))
    found += _strategy_faults(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    found += _retention_faults(spec.get("persistentVolumeClaimRetentionPolicy") or {})
    found += workload_spec.counts(spec, "replicas", "minReadySeconds")
    found += _start_faults(spec)
    found += workload_spec.selector(spec, "statefulset")
    found += workload_spec.template(_with_claims(spec), old_spec=old["spec"] if old else None, kind="StatefulSet")
    return found + (_change_faults(new, old) if old else _new_faults(spec))


def _new_faults(spec: Object) -> list[FieldError]:
    """What is checked only once, since it never changes: the Service's name, the claims."""
    service = spec.get("serviceName", "")
    texts = names.dns_label_faults(service) if service else []
    found = [invalid("spec.serviceName", service, text) for text in texts]
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or []):
        found += claim_validation.spec_faults(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    return found


def warnings(new: Object, old: Object | None) -> list[str]:
    """What the writer of a StatefulSet is told."""
    found = pod_warnings.of_template(new, old)
    if new["spec"].get("revisionHistoryLimit", 0) < 0:
        text = "a negative value retains all historical revisions; a value >= 0 is recommended"
        found.append(f"spec.revisionHistoryLimit: {text}")
    return found


def _with_claims(spec: Object) -> Object:
    """The spec with its claims among the template's volumes: containers may mount them."""
    listed = [(claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or []]
    claims = list(dict.fromkeys(listed))
    if not claims:
        return spec
    template = spec.get("template") or {}
    pod_spec = template.get("spec") or {}
    kept = [volume for volume in pod_spec.get("volumes") or [] if volume.get("name") not in claims]
    volumes = kept + [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return {**spec, "template": {**template, "spec": {**pod_spec, "volumes": volumes}}}


def _management_faults(policy: str) -> list[FieldError]:
    if policy in ("OrderedReady", "Parallel"):
        return []
    return [invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")]


def _retention_faults(policy: Object) -> list[FieldError]:
    return [
        not_supported(f"spec.persistentVolumeClaimRetentionPolicy.{name}", policy[name], ("Retain", "Delete"))
        for name in ("whenDeleted", "whenScaled")
        if policy.get(name) not in (None, "Retain", "Delete")
    ]


def _start_faults(spec: Object) -> list[FieldError]:
    """What is wrong with the number of the first pod."""
    start = (spec.get("ordinals") or {}).get("start", 0)
    return [] if start >= 0 else [invalid("spec.ordinals.start", start, workload_spec.NOT_NEGATIVE)]


def _strategy_faults(strategy: Object, path: str) -> list[FieldError]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        text = "only allowed for updateStrategy 'RollingUpdate'"
        shown = go_struct.shown(rolling or {}, "apps/v1.RollingUpdateStatefulSetStrategy")
        return [] if rolling is None else [invalid(f"{path}.rollingUpdate", shown, text)]
    if kind != "RollingUpdate":
        shown = go_struct.shown(strategy, "apps/v1.StatefulSetUpdateStrategy")
        return [invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")]
    return _rolling_faults(rolling or {}, f"{path}.rollingUpdate")


def _rolling_faults(rolling: Object, path: str) -> list[FieldError]:
    partition, unavailable = rolling.get("partition", 0), rolling.get("maxUnavailable", 1)
    found = []
    if partition < 0:
        found.append(invalid(f"{path}.partition", partition, workload_spec.NOT_NEGATIVE))
    found += int_or_percent.faults(unavailable, f"{path}.maxUnavailable")
    if int_or_percent.is_zero(unavailable):
        found.append(invalid(f"{path}.maxUnavailable", unavailable, "cannot be 0"))
    return found + int_or_percent.at_most_all(unavailable, f"{path}.maxUnavailable")


def _change_faults(new: Object, old: Object) -> list[FieldError]:
    found = [fault for name in _FIXED for fault in workload_spec.immutable(name, new, old)]
    claims = new["spec"].get("volumeClaimTemplates") or []
    if not semantics.same(claims, old["spec"].get("volumeClaimTemplates") or []):
        shown = [go_struct.shown(claim, "core/v1.PersistentVolumeClaim") for claim in claims] or None
        found.append(invalid("spec.volumeClaimTemplates", shown, "field is immutable"))
    return found


def status_faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with the status of a StatefulSet."""
    del old
    status = new.get("status") or {}
    found = workload_spec.status_counts(status, *_COUNTS)
    for small in ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"):
        found += workload_spec.not_more(status, small, "replicas")
    return found + workload_spec.not_more(status, "availableReplicas", "readyReplicas")


def _row(stateful_set: Object, now_ns: int) -> list[Any]:
    spec, status = stateful_set["spec"], stateful_set.get("status") or {}
    names, images = printing.containers((spec.get("template") or {}).get("spec") or {})
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    name = stateful_set["metadata"].get("name", "")
    return [name, ready, printing.created_age(stateful_set, now_ns), names, images]


RESOURCE = Resource(
    group="apps",
    plural="statefulsets",
    singular="statefulset",
    kind="StatefulSet",
    versions=(Version("v1", "apps/v1.StatefulSet", default=fill),),
    storage_version="v1",
    short_names=("sts",),
    categories=("all",),
    has_status=True,
    scale=scaling.BY_LABEL_SELECTOR,
    strategy=Strategy(
        prepare_create=status_subresource.start_with({"replicas": 0, "availableReplicas": 0}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=faults,
        validate_status=status_faults,
        warnings=warnings,
        has_generation=True,
    ),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the stateful set, unique within its namespace."),
            Column("Ready", description="How many pods are ready, of those asked for."),
            Column("Age", description="Time since the stateful set was created."),
            Column("Containers", description="Names of the template's containers.", priority=1),
            Column("Images", description="Images of the template's containers.", priority=1),
        ),
        row=_row,
    ),
)
