"""Charges creates and updates to the ResourceQuotas of their namespace, and refuses those that exceed one.

`cli.up` calls `register`; from then on `registry.object_writer` calls `QuotaAdmission.charge` after it has
validated an object and before it stores it. The new status.used of the quotas is a part of the same transaction, so
that concurrent creates together never exceed a quota, and a write that fails later is not charged.
`controllers.cluster.resource_quota` sets status.hard, and lowers status.used after deletions; a quota without
status.hard refuses nothing. `api.kinds.policy.quota_usage` has what the objects of each kind use.

Source: kube-apiserver's admission plugin ResourceQuota and its messages. Differs: there is no configuration of
resources that are limited by default.
"""

from collections.abc import Iterable, Mapping

from podscaler.api.kinds.policy import quota_usage
from podscaler.api.kinds.policy.quota_usage import Amounts, QuotaEvaluator
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object, Resource
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.storage.change_log import StoreEvent
from podscaler.controlplane.storage.transactions import Transaction

QUOTAS = "resourcequotas"


def register(objects: Objects) -> None:
    """Charge all creates and updates of `objects` from now on."""
    admission = QuotaAdmission(entry.key for entry in objects.list(QUOTAS).entries)
    objects.listen(admission.index)
    objects.set_charge(admission.charge)


class QuotaAdmission:
    """Finds the quotas of a namespace, and charges them.

    Args:
        quota_keys: the stored quotas, as `namespace/name`.
    """

    def __init__(self, quota_keys: Iterable[str]) -> None:
        self._names: dict[str, set[str]] = {}
        """The names of the quotas of each namespace that has some."""
        for key in quota_keys:
            self._add_quota(key)

    def index(self, events: Iterable[StoreEvent]) -> None:
        """Add and remove the quotas that the events of a commit concern."""
        for event in events:
            if event.subject.resource != QUOTAS:
                continue
            if event.entry is not None:
                self._add_quota(event.subject.key)
            else:
                self._remove_quota(event.subject.key)

    def charge(self, transaction: Transaction, resource: Resource, new: Object, old: Object | None) -> None:
        """Add what a write uses to the quotas of its namespace. Raises StatusError 403.

        Args:
            transaction: the transaction of the write, in which the quotas are updated too.
            resource: the kind of the object.
            new: the object as it will be stored.
            old: the stored object, None for a create.
        """
        namespace = new["metadata"].get("namespace", "")
        if not namespace or namespace not in self._names or resource.storage_key in quota_usage.IGNORED_KINDS:
            return
        evaluator = quota_usage.evaluator_of(resource.storage_key)
        if old is not None and not evaluator.charges_update(new, old):
            return
        charged = []
        for name in sorted(self._names[namespace]):
            entry = transaction.find(QUOTAS, namespace, name)
            if entry is not None:
                quota = entry.decode()
                used = self._used_after(quota, evaluator, resource, (new, old), transaction.now_ns)
                if used is not None:
                    quota["status"]["used"] = {counted: str(used[counted]) for counted in sorted(used)}
                    charged.append(quota)
        for quota in charged:
            transaction.put(QUOTAS, quota)

    def _used_after(
        self,
        quota: Object,
        evaluator: QuotaEvaluator,
        resource: Resource,
        write: tuple[Object, Object | None],
        now_ns: int,
    ) -> dict[str, Quantity] | None:
        """The status.used of a quota after a write, None if it does not change.

        Args:
            quota: the ResourceQuota.
            evaluator: computes what objects of the kind use.
            resource: the kind of the object.
            write: the object after and before the write; None before a create.
            now_ns: the time of the write, nanoseconds since the epoch.

        Raises StatusError 403 if the quota would be exceeded, or the object cannot be charged to it.
        """
        new, old = write
        status = quota.get("status") or {}
        hard, used = quota_usage.amounts_of(status.get("hard")), quota_usage.amounts_of(status.get("used"))
        tracked, scopes = evaluator.tracked_names(hard), quota_usage.scope_requirements(quota)
        if not tracked or not _is_in_scopes(evaluator, scopes, new):
            return None
        reason = _uncharged_reason(quota["metadata"]["name"], evaluator, tracked, used, new)
        if reason:
            raise api_errors.forbidden(resource, api_errors.name_at_admission(new), reason)
        added_usage: Mapping[str, Quantity] = evaluator.usage(new, now_ns)
        if old is not None and _is_in_scopes(evaluator, scopes, old):
            added_usage = quota_usage.increased_amounts(added_usage, evaluator.usage(old, now_ns))
        requested = {counted: amount for counted, amount in added_usage.items() if counted in hard and amount.sign()}
        after = quota_usage.add_amounts(used, requested)
        reason = _excess_reason(quota["metadata"]["name"], requested, after, used, hard)
        if reason:
            raise api_errors.forbidden(resource, api_errors.name_at_admission(new), reason)
        return after if requested else None

    def _add_quota(self, key: str) -> None:
        """Note a stored quota; `key` is `namespace/name`."""
        namespace, _, name = key.partition("/")
        self._names.setdefault(namespace, set()).add(name)

    def _remove_quota(self, key: str) -> None:
        """Forget a deleted quota; `key` is `namespace/name`."""
        namespace, _, name = key.partition("/")
        names = self._names.get(namespace, set())
        names.discard(name)
        if not names:
            self._names.pop(namespace, None)


def _is_in_scopes(evaluator: QuotaEvaluator, scopes: Iterable[Object], obj: Object) -> bool:
    """Whether a quota with these scope requirements counts the object."""
    return all(evaluator.is_in_scope(scope, obj) for scope in scopes)


def _uncharged_reason(name: str, evaluator: QuotaEvaluator, tracked: frozenset[str], used: Amounts, new: Object) -> str:
    """Why an object cannot be charged to the quota `name`; empty if it can."""
    if lacking := evaluator.missing_message(tracked, new):
        return f"failed quota: {name}: {lacking}"
    if not tracked <= used.keys():
        return f"status unknown for quota: {name}, resources: {','.join(sorted(tracked))}"
    all_amounts = evaluator.usage(new, now_ns=0)  # at that time no pod's grace period is over
    negative = [counted for counted, amount in all_amounts.items() if amount.sign() < 0]
    return f"quota usage is negative for resource(s): {','.join(sorted(negative))}" if negative else ""


def _excess_reason(name: str, requested: Amounts, after: Amounts, used: Amounts, hard: Amounts) -> str:
    """Why the quota `name` is exceeded by the amounts `after` the write; empty if it is not."""
    exceeded = sorted(counted for counted in requested if hard[counted] < after[counted])
    if not exceeded:
        return ""
    requested_text, used_text, hard_text = (_format_amounts(amounts, exceeded) for amounts in (requested, used, hard))
    return f"exceeded quota: {name}, requested: {requested_text}, used: {used_text}, limited: {hard_text}"


def _format_amounts(amounts: Amounts, names: Iterable[str]) -> str:
    """Amounts as in kube-apiserver's messages: `cpu=1,memory=1Gi`."""
    return ",".join(f"{name}={amounts[name]}" for name in names)
