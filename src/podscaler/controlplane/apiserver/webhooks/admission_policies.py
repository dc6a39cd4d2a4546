"""Applies the stored ValidatingAdmissionPolicies to writes: one decision for each policy, binding and parameter object.

`webhook_admission` calls it before the validating webhooks. Commits update the index of policies and bindings, so that
a write costs nothing where there are none. A policy acts only where a binding names it.

Source: kube-apiserver's validating policy plugin, its dispatcher and validator. Differs: the variable `authorizer` is
not declared; composed variables that an expression names are evaluated even where it would not need them; audit
annotations are not evaluated, as the audit log has none.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from podscaler.api.kinds.policy import admission_policy
from podscaler.api.machinery import selectors
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object, Resource
from podscaler.base.errors import Cause, StatusError
from podscaler.controlplane.apiserver.webhooks import admission_reviews, matching
from podscaler.controlplane.apiserver.webhooks.configurations import Webhook
from podscaler.controlplane.apiserver.webhooks.matching import ServedVersion
from podscaler.controlplane.registry import acting_user, remote_admission
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.remote_admission import AdmittedWrite
from podscaler.controlplane.storage.change_log import StoreEvent

MESSAGE_MAX_BYTES: Final = 5 * 1024
CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}
_COMPOSED: Final = re.compile(r"\bvariables\.([_a-zA-Z][_a-zA-Z0-9]*)")
_POLICY, _BINDING = admission_policy.POLICY.key, admission_policy.BINDING.key


class ConfigurationFailure(Exception):
    """A binding cannot be applied; the text says why."""


@dataclass(frozen=True, slots=True)
class Denial:
    """A validation that failed.

    Attributes:
        message: for the client.
        reason: of the Status.
    """

    message: str
    reason: str = "Invalid"


@dataclass(slots=True)
class BoundPolicies:
    """The stored policies, and their bindings.

    Attributes:
        policies, bindings: by name.
    """

    policies: dict[str, Object] = field(default_factory=dict)
    bindings: dict[str, Object] = field(default_factory=dict)

    def apply(self, events: list[StoreEvent]) -> None:
        """Apply the events of a commit."""
        for event in events:
            table = {_POLICY: self.policies, _BINDING: self.bindings}.get(event.subject.resource)
            if table is None:
                continue
            if event.entry is None:
                table.pop(event.subject.name, None)
            else:
                table[event.subject.name] = event.entry.decode()

    def bound(self) -> Iterator[tuple[Object, Sequence[Object]]]:
        """Each policy with its bindings, by name; policies without bindings are left out."""
        for name, policy in sorted(self.policies.items()):
            bindings = [
                binding for _, binding in sorted(self.bindings.items()) if binding["spec"]["policyName"] == name
            ]
            if bindings:
                yield policy, bindings


def watch_policies(objects: Objects) -> BoundPolicies:
    """An index of the policies of `objects` that is updated by every commit."""
    index = BoundPolicies()
    for key, table in ((_POLICY, index.policies), (_BINDING, index.bindings)):
        if objects.knows(key):
            for entry in objects.list(key).entries:
                obj = entry.decode()
                table[obj["metadata"]["name"]] = obj
    objects.listen(index.apply)
    return index


class PolicyAdmission:
    """Applies the policies of the stored bindings.

    Args:
        objects: the stored objects.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._index = watch_policies(objects)

    @property
    def is_needed(self) -> bool:
        """Whether there are policies with bindings at all."""
        return bool(self._index.policies) and bool(self._index.bindings)

    async def validate(self, write: AdmittedWrite) -> None:
        """Raise StatusError for a write that a policy denies; add the warnings of others to its context."""
        denied: list[tuple[str, Denial]] = []
        for policy, bindings in list(self._index.bound()):
            spec = policy["spec"]
            versions = matching.versions_of(self._objects, write, remote_admission.current().api_version)
            sent = self._matched(spec["matchConstraints"], write, versions)
            if sent is None:
                continue
            for binding in bindings:
                restricted = binding["spec"].get("matchResources")
                if restricted is not None and self._matched(restricted, write, versions) is None:
                    continue
                denials = await self._denials(policy, binding, write, sent, versions[0])
                name = f"'{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
                denied += self._carried_out(binding["spec"]["validationActions"], name, denials)
        if denied:
            raise _rejection(write, *denied[0])

    def _carried_out(self, actions: Sequence[str], name: str, denials: Sequence[Denial]) -> list[tuple[str, Denial]]:
        """The denials that reject the write; those of the action Warn become warnings."""
        context = remote_admission.current()
        for denial in denials if "Warn" in actions else ():
            text = f"Validation failed for ValidatingAdmissionPolicy {name}: {denial.message}"
            context.warnings += [] if text in context.warnings else [text]
        return [(name, denial) for denial in denials] if "Deny" in actions else []

    def _matched(
        self, resources: Object, write: AdmittedWrite, versions: Sequence[ServedVersion]
    ) -> ServedVersion | None:
        """The version in which a policy or binding gets the objects of a write; None if it does not match."""
        matched = _as_webhook(resources, "resourceRules", write)
        if not matching.is_selected(matched, write, self._objects):
            return None
        excluded = _as_webhook(resources, "excludeResourceRules", write)
        if matching.find_version(excluded, write, versions) is not None:
            return None
        if resources.get("resourceRules"):
            return matching.find_version(matched, write, versions)
        return versions[0]  # a binding without rules has those of its policy

    async def _denials(
        self, policy: Object, binding: Object, write: AdmittedWrite, sent: ServedVersion, requested: ServedVersion
    ) -> list[Denial]:
        """What a policy denies of a write by one of its bindings, for each of the parameters."""
        from podscaler.controlplane.apiserver.webhooks import policy_evaluation  # the language takes a while to import

        try:
            parameters = self._parameters(policy["spec"].get("paramKind"), binding["spec"].get("paramRef"), write)
        except ConfigurationFailure as failure:
            ignored = policy["spec"]["failurePolicy"] == "Ignore"
            return [] if ignored else [Denial(f"failed to configure binding: {failure}")]
        new, old = await self._objects.converted(
            lambda: [sent.converted(obj, write.subresource) for obj in (write.new, write.old)]
        )
        variables = {
            "object": new,
            "oldObject": old,
            "request": admission_reviews.request_of(write, sent, requested, acting_user.current()),
            "namespaceObject": None
            if write.resource.key == matching.NAMESPACES
            else matching.find_namespace(write, self._objects),
        }
        denials: list[Denial] = []
        for parameter in parameters:
            denials += policy_evaluation.denials(policy["spec"], {**variables, "params": parameter})
        return denials

    def _parameters(self, kind: Object | None, reference: Object | None, write: AdmittedWrite) -> list[Object | None]:
        """The parameter objects of a binding; a single None without parameters. Raises ConfigurationFailure."""
        if kind is None or reference is None:
            return [None]
        resource = self._find_kind(kind)
        if resource is None:
            raise ConfigurationFailure(f"paramKind kind `{kind['apiVersion']}, Kind={kind['kind']}` not known")
        namespace = reference.get("namespace", "")
        if not resource.namespaced and namespace:
            raise ConfigurationFailure("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        if resource.namespaced and not namespace:
            namespace = write.namespace
            if not namespace:
                text = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                raise ConfigurationFailure(text)
        entries = self._objects.list(resource.key, namespace).entries
        version = next(each for each in resource.versions if _api_version(resource, each.version) == kind["apiVersion"])
        served = ServedVersion(resource, version)
        parameters: list[Object | None] = [
            served.converted(obj, "") for obj in (entry.decode() for entry in entries) if _is_referred(obj, reference)
        ]
        if not parameters and reference.get("parameterNotFoundAction") == "Deny":
            raise ConfigurationFailure("no params found for policy binding with `Deny` parameterNotFoundAction")
        return parameters

    def _find_kind(self, kind: Mapping[str, str]) -> Resource | None:
        """The resource of the parameters' kind; None if it is not served."""
        return next(
            (
                resource
                for resource in self._objects.resources
                if resource.kind == kind["kind"]
                and any(_api_version(resource, version.version) == kind["apiVersion"] for version in resource.versions)
            ),
            None,
        )


def _api_version(resource: Resource, version: str) -> str:
    return f"{resource.group}/{version}" if resource.group else version


def _is_referred(obj: Object, reference: Object) -> bool:
    if reference.get("name"):
        return bool(obj["metadata"]["name"] == reference["name"])
    return selectors.from_label_selector(reference.get("selector") or {}).matches(obj["metadata"].get("labels") or {})


def _as_webhook(resources: Object, rules: str, write: AdmittedWrite) -> Webhook:
    """MatchResources as `matching` reads them; rules that name other objects are left out."""
    named = [
        rule
        for rule in resources.get(rules) or []
        if not rule.get("resourceNames") or write.name in rule["resourceNames"]
    ]
    return Webhook(
        identity=("", 0),
        source={"rules": named, "matchPolicy": resources.get("matchPolicy")},
        authority=b"",
        namespaces=selectors.from_label_selector(resources.get("namespaceSelector") or {}),
        labels=selectors.from_label_selector(resources.get("objectSelector") or {}),
    )


def composed_names(expression: str) -> list[str]:
    """The names of composed variables that an expression has."""
    return list(dict.fromkeys(_COMPOSED.findall(expression)))


def _rejection(write: AdmittedWrite, name: str, denial: Denial) -> StatusError:
    """The error of a denied write."""
    message = f"ValidatingAdmissionPolicy {name} denied request: {denial.message}"
    error = api_errors.forbidden(write.resource, write.name, message, cause=Cause("", message, ""))
    return StatusError(
        error.message,
        code=CODES.get(denial.reason, 422),
        reason=denial.reason,
        details=error.details,
        causes=error.causes,
    )
