"""Makes the object that replaces an autoscaler in a migration (HorizontalPodAutoscaler or PodAutoscaler). Pure.

`podscaler.controller.coexistence.migration` creates this counterpart in the cluster, and deletes the first object. A
field that only one of the kinds has: a branch in `of`; a further annotation of migrations: in MIGRATION_ANNOTATIONS.
"""

import json
from typing import Any

import msgspec

from podscaler.api.typed.autoscaling import OnMetricFailureSpec
from podscaler.controller.informers import custom_autoscaler, handover
from podscaler.controller.informers.handover import MigrationOrigin
from podscaler.controller.options.autoscaler_kinds import HPA, AutoscalerKind
from podscaler.core.model import failure_policy

Object = dict[str, Any]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MIGRATION_ANNOTATIONS = (handover.MIGRATED_FROM, handover.MIGRATING_TO, handover.HISTORY)


def of(source: Object, source_kind: AutoscalerKind, kind: AutoscalerKind, *, history: str) -> Object:
    """The object that replaces `source`: of the other kind, without a status.

    Labels, annotations and owners are kept; finalizers are not, because their controllers handle the first kind.

    Args:
        source: the object as read from the API server, in autoscaling/v2 or podscaler.dev/v1alpha1.
        source_kind: the source's kind.
        kind: the result's kind.
        history: the stored history, as the text of a record; empty if there is none.

    Raises ValueError for a failure policy of another form.
    """
    meta = source["metadata"]
    annotations = dict(meta.get("annotations") or {})
    for name in (*MIGRATION_ANNOTATIONS, LAST_APPLIED):
        annotations.pop(name, None)
    annotations |= _last_applied(meta, kind)
    annotations[handover.MIGRATED_FROM] = str(MigrationOrigin(source_kind.flag, meta["name"], meta["uid"]))
    if history:
        annotations[handover.HISTORY] = history
    spec = custom_autoscaler.with_quantities({"spec": source["spec"]})["spec"]
    if kind is HPA and "onMetricFailure" in spec:
        annotations |= _failure_annotations(spec["onMetricFailure"])
        spec = {name: field for name, field in spec.items() if name != "onMetricFailure"}
    metadata = {"name": meta["name"], "namespace": meta["namespace"], "annotations": annotations}
    metadata |= {name: meta[name] for name in ("labels", "ownerReferences") if meta.get(name)}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def _failure_annotations(policy: Object) -> dict[str, str]:
    """The annotations with the failure policy of a PodAutoscaler: a HorizontalPodAutoscaler has no field for it."""
    return failure_policy.as_annotations(msgspec.convert(policy, OnMetricFailureSpec))


def _last_applied(meta: Object, kind: AutoscalerKind) -> dict[str, str]:
    """The last-applied configuration of kubectl with the other kind; empty if there is none, or an older version."""
    applied_json = (meta.get("annotations") or {}).get(LAST_APPLIED)
    try:
        applied = json.loads(applied_json) if applied_json else None
    except ValueError:
        applied = None
    if not isinstance(applied, dict) or applied.get("apiVersion") == "autoscaling/v1":
        return {}
    return {LAST_APPLIED: json.dumps(applied | {"apiVersion": kind.api_version, "kind": kind.kind}) + "\n"}


def with_status(counterpart: Object, source: Object) -> Object | None:
    """The counterpart, as the API server has it, with the source's status; None if the source has no status."""
    status = source.get("status") or {}
    if not status.get("conditions"):
        return None
    if "observedGeneration" in status:
        status = status | {"observedGeneration": counterpart["metadata"].get("generation", 1)}
    return counterpart | {"status": status}


def is_of(counterpart: Object, source_kind: AutoscalerKind, name: str, uid: str | None = None) -> bool:
    """Whether an object is the counterpart of the source with that name (and uid, if it is given)."""
    annotations = counterpart["metadata"].get("annotations") or {}
    parts = annotations.get(handover.MIGRATED_FROM, "").split("/")
    return parts[:2] == [source_kind.flag, name] and uid in (None, parts[-1])


def differs(counterpart: Object, desired_object: Object) -> bool:
    """Whether the source was edited since the counterpart was made: spec, labels or owners, defaults aside."""
    metadata, desired_metadata = counterpart["metadata"], desired_object["metadata"]
    is_same = all(
        (metadata.get(name) or None) == (desired_metadata.get(name) or None) for name in ("labels", "ownerReferences")
    )
    return not is_same or _lacks_or_differs(
        desired_object["spec"], custom_autoscaler.with_quantities({"spec": counterpart["spec"]})["spec"]
    )


def _lacks_or_differs(desired_value: Any, present_value: Any) -> bool:
    """Whether a field of `desired_value` is absent or different in `present_value`; its further fields are defaults."""
    if isinstance(desired_value, dict) and isinstance(present_value, dict):
        return any(_lacks_or_differs(field, present_value.get(name)) for name, field in desired_value.items())
    if isinstance(desired_value, list) and isinstance(present_value, list):
        return len(desired_value) != len(present_value) or any(map(_lacks_or_differs, desired_value, present_value))
    return bool(desired_value != present_value)
