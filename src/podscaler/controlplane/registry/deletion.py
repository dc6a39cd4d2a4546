"""Plans a delete: whether the object gets a deletionTimestamp ("is marked"), is removed, or both.

`registry.object_writer` calls it inside a transaction, after `registry.objects` checked the options. Nothing here does
I/O or stores. A rule of one kind is a hook of its `Strategy` (`api.resource.resources`).

1. If a precondition fails, the delete is refused.
2. A propagation policy adds the finalizer `orphan` or `foregroundDeletion` (or removes both) for the garbage collector.
3. An object of a kind with a grace period (Pod) is marked with its deadline, which a later delete can only shorten.
   Without a grace period, or when it is 0, the object is removed at once,
4. unless it has finalizers (or `Strategy.is_held` of its kind says so): then it stays, marked, until the last finalizer
   is removed.

Source: the API conventions on deletion, finalizers and propagation; the captures `delete-*`.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from podscaler.api.machinery import field, numbers
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object, Resource
from podscaler.base.clock import NANOSECONDS, rfc3339
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.options import DeleteOptions

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_PROPAGATION_POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """The steps of a delete, in this order.

    Attributes:
        marked: the object to store, with its deletionTimestamp; None if the stored object stays as it is.
        gone: whether the object is removed then.
    """

    marked: Object | None
    gone: bool


def check_options(options: DeleteOptions) -> None:
    """Raise StatusError 422 for an unknown policy, or for both a policy and orphanDependents."""
    errors = []
    policy = options.propagation
    if policy and policy not in _PROPAGATION_POLICIES:
        errors.append(field.not_supported("propagationPolicy", policy, (*_PROPAGATION_POLICIES, "nil")))
    if policy and options.orphan_dependents is not None:
        conflict_message = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(field.invalid("propagationPolicy", policy, conflict_message))
    if errors:
        raise api_errors.invalid_options("DeleteOptions", errors)


def check_preconditions(resource: Resource, stored: Entry, options: DeleteOptions) -> None:
    """Raise StatusError 409 if `stored` does not meet the preconditions."""
    uid, version = options.preconditions.uid, options.preconditions.resource_version
    if uid and uid != stored.uid:
        mismatch = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({stored.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise api_errors.delete_conflict(resource, stored.name, mismatch)
    if version and version != str(stored.revision):
        mismatch = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({stored.revision}). The object might have been modified"
        )
        raise api_errors.delete_conflict(resource, stored.name, mismatch)


def plan(resource: Resource, stored: Object, options: DeleteOptions, now_ns: int) -> DeletionPlan:
    """The plan of a delete with these options, which meets the preconditions; `stored` is changed in place."""
    metadata = stored["metadata"]
    if resource.strategy.grace_period_s is not None and _keeps_deadline(metadata, options):  # nothing changes
        return DeletionPlan(marked=None, gone=False)
    finalizers = _finalizers_after(resource, metadata.pop("finalizers", None) or [], options)
    if finalizers:
        metadata["finalizers"] = finalizers
    is_graceful = _mark_gracefully(resource, stored, options, now_ns)
    is_held = bool(finalizers) or resource.strategy.is_held(stored)
    if not is_graceful and is_held:
        _mark_immediately(metadata, now_ns)
    if "deletionTimestamp" in metadata:
        resource.strategy.prepare_delete(stored)
    if is_held:
        return DeletionPlan(marked=stored, gone=False)
    if is_graceful:  # a period of 0 removes at once, but the marked version is stored before, as upstream
        return DeletionPlan(marked=stored, gone=metadata["deletionGracePeriodSeconds"] == 0)
    return DeletionPlan(marked=None, gone=True)


def is_last_finalizer_removed(resource: Resource, new: Object, old: Object) -> bool:
    """Whether the update from `old` to `new` removed the last finalizer of a deleted object, which is then removed."""
    old_metadata = old["metadata"]
    if not old_metadata.get("deletionTimestamp") or old_metadata.get("deletionGracePeriodSeconds", 0) != 0:
        return False
    return not new["metadata"].get("finalizers") and not resource.strategy.is_held(new)


def _keeps_deadline(metadata: Object, options: DeleteOptions) -> bool:
    """Whether a graceful deletion is in progress and this delete does not shorten its grace period."""
    remaining_s = metadata.get("deletionGracePeriodSeconds", 0)
    if "deletionTimestamp" not in metadata or remaining_s == 0:
        return False
    requested_s = _requested_grace_period_s(options)
    return requested_s is None or requested_s >= remaining_s


def _mark_gracefully(resource: Resource, obj: Object, options: DeleteOptions, now_ns: int) -> bool:
    """Set deletionTimestamp (the deadline) and grace period, in place.

    Returns False, and changes nothing, if there is no grace period to wait for.
    """
    strategy, metadata = resource.strategy, obj["metadata"]
    if strategy.grace_period_s is None:
        return False
    requested_s = _requested_grace_period_s(options)
    if "deletionTimestamp" in metadata:
        if metadata.get("deletionGracePeriodSeconds", 0) == 0 or requested_s is None:
            return False
        _shorten_grace_period(metadata, requested_s)
        return True
    period_s = strategy.grace_period_s(obj, requested_s)
    metadata["deletionTimestamp"] = rfc3339(now_ns + _duration_ns(period_s))
    metadata["deletionGracePeriodSeconds"] = period_s
    _raise_generation(metadata)
    return True


def _mark_immediately(metadata: Object, now_ns: int) -> None:
    """Mark, in place, an object that stays only because of its finalizers; an earlier deadline is kept."""
    if "deletionGracePeriodSeconds" not in metadata:  # else it was raised when the object was marked first
        _raise_generation(metadata)
    now = rfc3339(now_ns)
    metadata["deletionTimestamp"] = min(metadata.get("deletionTimestamp", now), now)
    metadata["deletionGracePeriodSeconds"] = 0


def _shorten_grace_period(metadata: Object, period_s: int) -> None:
    """Set the deadline to `period_s` after the first delete, in place."""
    deadline = datetime.strptime(metadata["deletionTimestamp"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    began_ns = int(deadline.timestamp()) * NANOSECONDS - _duration_ns(metadata["deletionGracePeriodSeconds"])
    metadata["deletionTimestamp"] = rfc3339(began_ns + _duration_ns(period_s))
    metadata["deletionGracePeriodSeconds"] = period_s


def _duration_ns(period_s: int) -> int:
    """The duration with Go's overflow: periods over 292 years wrap around, so that the deadline is a valid date."""
    return numbers.wrap64(period_s * NANOSECONDS)


def _raise_generation(metadata: Object) -> None:
    """Count the deletion in metadata.generation, as upstream does, in place; kinds without a generation keep none."""
    if metadata.get("generation", 0) > 0:
        metadata["generation"] += 1


def _requested_grace_period_s(options: DeleteOptions) -> int | None:
    """The grace period in the options, None if they have none; a negative one counts as one second."""
    if options.grace_period_s is None:
        return None
    return options.grace_period_s if options.grace_period_s >= 0 else 1


def _finalizers_after(resource: Resource, finalizers: list[str], options: DeleteOptions) -> list[str]:
    """`finalizers`, of which the garbage collector's are replaced by the one of the policy."""
    policy_finalizer = _policy_finalizer(resource, finalizers, options)
    if policy_finalizer in finalizers:
        return finalizers
    other_finalizers = [name for name in finalizers if name not in (ORPHAN, FOREGROUND)]
    return [*other_finalizers, policy_finalizer] if policy_finalizer else other_finalizers


def _policy_finalizer(resource: Resource, finalizers: list[str], options: DeleteOptions) -> str:
    """The finalizer of the options' policy, else of an earlier delete, else the default; empty for background."""
    if resource.strategy.has_no_dependents:
        return ""
    if options.orphan_dependents is not None:
        return ORPHAN if options.orphan_dependents else ""
    if options.propagation:
        return {"Orphan": ORPHAN, "Foreground": FOREGROUND, "Background": ""}[options.propagation]
    for name in (ORPHAN, FOREGROUND):
        if name in finalizers:
            return name
    return ORPHAN if resource.strategy.orphans_by_default else ""
