"""Measures the use of quotas by objects: counts, requests and limits of pods, ports of Services, storage of claims.

`podscaler.controlplane.admission.resource_quotas` measures the object of each write;
`podscaler.controlplane.controllers.cluster.resource_quota` sums up all objects of a namespace. Each kind has one
`QuotaEvaluator`; `evaluator_of` returns it. A kind of which more than the count is limited: a subclass, and an entry of
_EVALUATORS. A new scope: a case in `is_in_scope`, and in `resourcequota`. Objects are JSON objects of the API; nothing
is changed, and their quantities were checked when they were decoded.

Source: kube-apiserver's quota evaluators (pods, services, persistentvolumeclaims, generic object counts) in Kubernetes
v1.37 and their messages. Differs: pods are charged by their spec (no resize in place); the scope VolumeAttributesClass
matches nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from podscaler.api.kinds.pods import pod_admission
from podscaler.api.machinery import instants, names
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS

Amounts = Mapping[str, Quantity]
"""Quantities by the names of a quota's spec.hard, such as `requests.cpu` and `count/jobs.batch`."""

IGNORED_KINDS: Final = frozenset({"events", "events.events.k8s.io"})
"""Kinds that no quota counts."""
_ONE: Final = Quantity(1)
_ZERO: Final = Quantity(0)
_NAMES_WITHOUT_COUNT_PREFIX: Final = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})
"""Kinds whose number also has the name of the kind alone, without `count/`."""
_COMPUTE_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_MUST_BE_DECLARED: Final = frozenset(
    f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in ("cpu", "memory")
)
"""Names of amounts that every container must declare if a quota limits them."""
_POD_NAMES: Final = frozenset(
    {
        "count/pods",
        "pods",
        *(f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in _COMPUTE_RESOURCES),
    }
)
"""Names that pods use, besides those of huge pages and extended resources."""
_HUGE_PAGES_PREFIX: Final = "hugepages-"
_CLASS_SUFFIX: Final = ".storageclass.storage.k8s.io/"
"""Between a storage class and a name of _CLAIM_NAMES: the use of this class."""
_CLAIM_NAMES: Final = ("persistentvolumeclaims", "requests.storage")


class QuotaEvaluator:
    """Counts the objects of a kind; subclasses measure more.

    Args:
        resource: the kind (`Resource.key`), such as `pods` and `jobs.batch`.
    """

    def __init__(self, resource: str) -> None:
        self._names = frozenset({f"count/{resource}", *({resource} & _NAMES_WITHOUT_COUNT_PREFIX)})

    def tracked_names(self, hard: Iterable[str]) -> frozenset[str]:
        """Those of the names in `hard` (spec.hard of a quota) that objects of this kind use."""
        return self._names & frozenset(hard)

    def usage(self, obj: Object, now_ns: int) -> dict[str, Quantity]:
        """The amounts that an object uses, by names of a quota.

        Args:
            now_ns: the present time since the epoch: a pod whose deletion grace period has ended uses only its count.
        """
        del obj, now_ns
        return dict.fromkeys(self._names, _ONE)

    def is_in_scope(self, requirement: Object, obj: Object) -> bool:
        """Whether an object is in a scope, given as an item of scopeSelector.matchExpressions."""
        del requirement, obj
        return False

    def missing_message(self, required: Iterable[str], obj: Object) -> str:
        """A message about amounts that the object must declare, and does not; empty if there are none.

        Args:
            required: names in spec.hard of a quota.
        """
        del required, obj
        return ""

    def charges_update(self, new: Object, old: Object) -> bool:
        """Whether an update of an object can change its use."""
        del new, old
        return False


class _PodEvaluator(QuotaEvaluator):
    """Measures pods by requests and limits; finished pods use nothing but their count."""

    def tracked_names(self, hard: Iterable[str]) -> frozenset[str]:
        """The names about pods, also those of huge pages and extended resources."""
        return frozenset(name for name in hard if name in _POD_NAMES or _is_about_extended_resource(name))

    def usage(self, obj: Object, now_ns: int) -> dict[str, Quantity]:
        """The use of a pod: its count, and its requests and limits while it is charged for them."""
        count_usage = {"count/pods": _ONE}
        if not is_charged(obj, now_ns):
            return count_usage
        spec = obj.get("spec") or {}
        return count_usage | _compute_usage(pod_amounts(spec, "requests"), pod_amounts(spec, "limits"))

    def is_in_scope(self, requirement: Object, obj: Object) -> bool:
        """Whether a pod is in the scope of a requirement."""
        spec = obj.get("spec") or {}
        match requirement.get("scopeName"):
            case "Terminating":
                return _is_terminating(obj)
            case "NotTerminating":
                return not _is_terminating(obj)
            case "BestEffort":
                return pod_admission.qos_class(spec) == "BestEffort"
            case "NotBestEffort":
                return pod_admission.qos_class(spec) != "BestEffort"
            case "PriorityClass":
                return _selects_class(requirement, spec.get("priorityClassName") or "")
            case "CrossNamespacePodAffinity":
                return _crosses_namespaces(spec.get("affinity") or {})
            case _:
                return False

    def missing_message(self, required: Iterable[str], obj: Object) -> str:
        """A message with the containers that lack an amount which a quota limits; empty if none does.

        A pod with resources of its own (`spec.resources`) need not declare those of containers.
        """
        spec, required_names = obj.get("spec") or {}, _MUST_BE_DECLARED & frozenset(required)
        if spec.get("resources"):
            return ""
        containers_by_amount: dict[str, list[str]] = {}
        for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
            container_amounts = _compute_usage(
                _declared_amounts(container, "requests"), _declared_amounts(container, "limits")
            )
            for name in required_names - container_amounts.keys():
                containers_by_amount.setdefault(name, []).append(container.get("name", ""))
        missing_texts = []
        for name, containers in sorted(containers_by_amount.items()):
            missing_texts.append(f"{name} for: {','.join(sorted(set(containers)))}")
        return f"must specify {'; '.join(missing_texts)}" if missing_texts else ""

    def charges_update(self, new: Object, old: Object) -> bool:
        return _is_terminating(new) != _is_terminating(old)


class _ServiceEvaluator(QuotaEvaluator):
    """Counts Services, their node ports, and those of type LoadBalancer."""

    def __init__(self, resource: str) -> None:
        super().__init__(resource)
        self._names |= {"services", "services.nodeports", "services.loadbalancers"}

    def usage(self, obj: Object, now_ns: int) -> dict[str, Quantity]:
        """The use of a Service: one Service, its node ports, one load balancer if it is one."""
        del now_ns
        spec = obj.get("spec") or {}
        service_type, ports = spec.get("type", ""), spec.get("ports") or []
        if service_type == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
            node_ports = sum(bool(port.get("nodePort")) for port in ports)
        else:  # one is allocated for each port
            node_ports = len(ports) if service_type in ("NodePort", "LoadBalancer") else 0
        load_balancers = int(service_type == "LoadBalancer")
        counts = {"services.nodeports": Quantity(node_ports), "services.loadbalancers": Quantity(load_balancers)}
        return {"count/services": _ONE, "services": _ONE, **counts}

    def charges_update(self, new: Object, old: Object) -> bool:
        return self.usage(new, now_ns=0) != self.usage(old, now_ns=0)  # the time matters only to pods


class _ClaimEvaluator(QuotaEvaluator):
    """Counts PersistentVolumeClaims and their storage, also for each storage class."""

    def tracked_names(self, hard: Iterable[str]) -> frozenset[str]:
        """The names about claims, for all storage classes together and for single ones."""
        plain_names = ("count/persistentvolumeclaims", *_CLAIM_NAMES)
        suffixes = tuple(f"{_CLASS_SUFFIX}{name}" for name in _CLAIM_NAMES)
        return frozenset(name for name in hard if name in plain_names or name.endswith(suffixes))

    def usage(self, obj: Object, now_ns: int) -> dict[str, Quantity]:
        """The use of a claim: one claim and its storage, both in total and of its storage class."""
        del now_ns
        spec = obj.get("spec") or {}
        amounts = {"persistentvolumeclaims": _ONE}
        if (storage := _declared_amounts(spec, "requests").get("storage")) is not None:
            amounts["requests.storage"] = storage
        annotations = (obj.get("metadata") or {}).get("annotations") or {}
        class_name = annotations.get("volume.beta.kubernetes.io/storage-class") or spec.get("storageClassName") or ""
        class_amounts = {f"{class_name}{_CLASS_SUFFIX}{name}": amount for name, amount in amounts.items() if class_name}
        return {"count/persistentvolumeclaims": _ONE, **amounts, **class_amounts}

    def charges_update(self, new: Object, old: Object) -> bool:
        return self.usage(new, now_ns=0) != self.usage(old, now_ns=0)  # the time matters only to pods


_EVALUATORS: Final[Mapping[str, QuotaEvaluator]] = {
    "pods": _PodEvaluator("pods"),
    "services": _ServiceEvaluator("services"),
    "persistentvolumeclaims": _ClaimEvaluator("persistentvolumeclaims"),
}


def evaluator_of(resource: str) -> QuotaEvaluator:
    """The evaluator of a kind (`Resource.key`)."""
    return _EVALUATORS.get(resource) or QuotaEvaluator(resource)


def scope_requirements(quota: Object) -> list[Object]:
    """The scopes of a quota, all as items of scopeSelector.matchExpressions."""
    spec = quota.get("spec") or {}
    requirements = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or []]
    return requirements + list((spec.get("scopeSelector") or {}).get("matchExpressions") or [])


def amounts_of(resource_list: Object | None) -> dict[str, Quantity]:
    """The quantities of a ResourceList (resource name -> amount as text or number), by the same names."""
    return {name: Quantity.parse(str(amount)) for name, amount in (resource_list or {}).items()}


def add_amounts(amounts: Amounts, added_amounts: Amounts) -> dict[str, Quantity]:
    """The sums by name; a name that only one of the two has keeps its amount."""
    total = dict(amounts)
    for name, amount in added_amounts.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def increased_amounts(new_amounts: Amounts, old_amounts: Amounts) -> dict[str, Quantity]:
    """The amounts by which `new_amounts` exceed `old_amounts`, only for names whose amount is larger."""
    increases: dict[str, Quantity] = {}
    for name, new_amount in new_amounts.items():
        old_amount = old_amounts.get(name)
        if old_amount is None:
            increases[name] = new_amount
        elif old_amount < new_amount:
            increases[name] = new_amount + Quantity(-old_amount.unscaled, old_amount.scale)
    return increases


def calculate_used(
    quota: Object, resources: Iterable[str], list_objects: Callable[[str], Iterable[Object]], now_ns: int
) -> dict[str, str]:
    """The status.used of a quota, as the sum over all objects of its namespace.

    Args:
        resources: the kinds (`Resource.key`) that quotas count.
        list_objects: from a kind to its objects in the quota's namespace.
        now_ns: the present time since the epoch.
    """
    hard, requirements = (quota.get("spec") or {}).get("hard") or {}, scope_requirements(quota)
    totals: dict[str, Quantity] = {}
    for resource in resources:
        evaluator = evaluator_of(resource)
        tracked_names = evaluator.tracked_names(hard)
        if not tracked_names:
            continue
        totals = add_amounts(totals, dict.fromkeys(tracked_names, _ZERO))
        for obj in list_objects(resource):
            if all(evaluator.is_in_scope(requirement, obj) for requirement in requirements):
                used = evaluator.usage(obj, now_ns)
                totals = add_amounts(totals, {name: used[name] for name in tracked_names & used.keys()})
    return {name: str(totals[name]) for name in hard if name in totals}


def is_charged(pod: Object, now_ns: int) -> bool:
    """Whether a pod uses more than its count: it has not finished, and its deletion grace period has not ended."""
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return False
    metadata = pod.get("metadata") or {}
    deletion_time, grace_s = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if deletion_time is None or grace_s is None:
        return True
    return now_ns <= instants.parse(deletion_time) + int(grace_s) * NANOSECONDS


def _is_terminating(pod: Object) -> bool:
    """Whether a pod is in the scope Terminating: it has a deadline (a pod that is being deleted need not have one)."""
    deadline_s = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return deadline_s is not None and deadline_s >= 0


def pod_amounts(spec: Object, field: str) -> dict[str, Quantity]:
    """The requests or limits of a whole pod with its overhead, by resource name.

    Init containers run one after another, each beside the sidecars (restartPolicy Always) that started before it. The
    pod needs the larger of this peak and the sum of the containers that run together.

    Args:
        spec: the spec of a pod.
        field: `requests` or `limits`.
    """
    total: dict[str, Quantity] = {}
    for container in spec.get("containers") or []:
        total = add_amounts(total, _declared_amounts(container, field))
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or []:
        own_amounts = _declared_amounts(container, field)
        if container.get("restartPolicy") == "Always":
            total, sidecars = add_amounts(total, own_amounts), add_amounts(sidecars, own_amounts)
            peak = _larger_by_name(peak, sidecars)
        else:
            peak = _larger_by_name(peak, add_amounts(own_amounts, sidecars))
    total = _larger_by_name(total, peak) | _declared_amounts(spec, field)  # those of the pod itself replace the sums
    overhead = amounts_of(spec.get("overhead"))
    if field == "limits":  # a resource without a limit stays unlimited
        overhead = {name: overhead[name] for name in overhead.keys() & total.keys()}
    return add_amounts(total, overhead)


def _larger_by_name(amounts: Amounts, other_amounts: Amounts) -> dict[str, Quantity]:
    """The larger amount of each name; a name that only one of the two has keeps its amount."""
    larger = {name: amount for name, amount in other_amounts.items() if name not in amounts or amounts[name] < amount}
    return {**amounts, **larger}


def _declared_amounts(container_or_spec: Object, field: str) -> dict[str, Quantity]:
    """The `requests` or `limits` (`field`) in the resources of a container, pod spec or claim spec."""
    return amounts_of((container_or_spec.get("resources") or {}).get(field))


def _compute_usage(requests: Amounts, limits: Amounts) -> dict[str, Quantity]:
    """The usage by names of a quota, from requests and limits by resource name; `pods` is 1.

    `cpu` and `requests.cpu` of a quota are the same request; `limits.cpu` is the limit.
    """
    usage = {"pods": _ONE}
    for name, amount in requests.items():
        if name in _COMPUTE_RESOURCES or name.startswith(_HUGE_PAGES_PREFIX):
            usage |= {name: amount, f"requests.{name}": amount}
        elif names.is_extended_resource(name):
            usage[f"requests.{name}"] = amount
    return usage | {f"limits.{name}": amount for name, amount in limits.items() if name in _COMPUTE_RESOURCES}


def _is_about_extended_resource(name: str) -> bool:
    """Whether a name of a quota is about huge pages or an extended resource."""
    is_huge = name.startswith((_HUGE_PAGES_PREFIX, f"requests.{_HUGE_PAGES_PREFIX}"))
    return is_huge or (name.startswith("requests.") and not names.is_native_resource(name))


def _selects_class(requirement: Object, priority_class: str) -> bool:
    """Whether a requirement of a scope selector selects a priority class; an empty name counts as not set."""
    values = requirement.get("values") or []
    match requirement.get("operator"):
        case "Exists":
            return bool(priority_class)
        case "DoesNotExist":
            return not priority_class
        case "In":
            return bool(priority_class) and priority_class in values
        case "NotIn":
            return priority_class not in values
        case _:
            return False


def _crosses_namespaces(affinity: Object) -> bool:
    """Whether a term of the pod affinity or anti-affinity selects pods of other namespaces."""
    for field in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(field) or {}
        required_terms = terms.get("requiredDuringSchedulingIgnoredDuringExecution") or []
        weighted_terms = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or []
        preferred_terms = [weighted.get("podAffinityTerm") or {} for weighted in weighted_terms]
        for term in [*required_terms, *preferred_terms]:
            if term.get("namespaces") or term.get("namespaceSelector") is not None:
                return True
    return False
