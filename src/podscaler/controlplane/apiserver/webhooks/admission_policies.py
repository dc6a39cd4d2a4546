"""Applies the stored ValidatingAdmissionPolicies to writes: one decision for each policy, binding and parameter object.

`webhook_admission` calls it before the validating webhooks. Commits update the index of policies and bindings, so that
a write costs nothing where there are none. A policy acts only where a binding names it.

A new variable of expressions: a line in `PolicyAdmission._evaluate`.

Source: kube-apiserver's validating policy plugin, its dispatcher and validator. Differs: the variable `authorizer` is
not declared; composed variables that an expression names are evaluated even where it would not need them; audit
annotations are not evaluated, as the audit log has none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from podscaler.api.kinds.policy import admission_policy
from podscaler.api.machinery import selectors
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.base.errors import Cause, StatusError
from podscaler.controlplane.apiserver.webhooks import admission_reviews, matching
from podscaler.controlplane.apiserver.webhooks.configurations import Webhook
from podscaler.controlplane.apiserver.webhooks.matching import ServedVersion
from podscaler.controlplane.registry import acting_user, remote_admission
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.remote_admission import AdmittedWrite
from podscaler.controlplane.storage.change_log import StoreEvent

if TYPE_CHECKING:
    from podscaler.controlplane.apiserver.webhooks.policy_evaluation import Denial

    Rejection = tuple[str, Denial]
    """The names of policy and binding for the message, and the denial."""

_CODE_BY_REASON: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}
"""The HTTP status of a denied write, by the `reason` of the validation."""
_POLICY, _BINDING = admission_policy.POLICY.key, admission_policy.BINDING.key


class ConfigurationFailure(Exception):
    """A policy or binding cannot be applied; the text says why."""


@dataclass(slots=True)
class BoundPolicies:
    """The stored policies, and their bindings.

    Attributes:
        policies, bindings: the stored objects by name.
    """

    policies: dict[str, Object] = field(default_factory=dict)
    bindings: dict[str, Object] = field(default_factory=dict)

    def apply(self, events: list[StoreEvent]) -> None:
        """Apply the events of a commit."""
        for event in events:
            objects_by_name = {_POLICY: self.policies, _BINDING: self.bindings}.get(event.subject.resource)
            if objects_by_name is None:
                continue
            if event.entry is None:
                objects_by_name.pop(event.subject.name, None)
            else:
                objects_by_name[event.subject.name] = event.entry.decode()

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
    for key, objects_by_name in ((_POLICY, index.policies), (_BINDING, index.bindings)):
        if objects.knows(key):
            for entry in objects.list(key).entries:
                obj = entry.decode()
                objects_by_name[obj["metadata"]["name"]] = obj
    objects.listen(index.apply)
    return index


class PolicyAdmission:
    """Applies the policies of the stored bindings."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._index = watch_policies(objects)

    @property
    def is_needed(self) -> bool:
        """Whether there are policies with bindings at all."""
        return bool(self._index.policies) and bool(self._index.bindings)

    async def validate(self, write: AdmittedWrite) -> None:
        """Raise StatusError for a write that a policy denies; add warnings to `remote_admission.current()`."""
        rejections: list[Rejection] = []
        for policy, bindings in list(self._index.bound()):
            rejections += await self._apply_policy(policy, bindings, write)
        if rejections:
            policy_text, denial = rejections[0]
            raise _rejection_error(write, policy_text, denial)

    async def _apply_policy(
        self, policy: Object, bindings: Sequence[Object], write: AdmittedWrite
    ) -> "list[Rejection]":
        """The rejections of a write by a policy and those of its bindings that match.

        A policy or binding that cannot be applied rejects the write whatever `validationActions` say, unless the
        failure policy is Ignore.
        """
        spec, name = policy["spec"], policy["metadata"]["name"]
        versions = matching.versions_of(self._objects, write, remote_admission.current().api_version)
        requested_version, *_ = versions
        sent_version = self._find_matched_version(spec["matchConstraints"], write, versions)
        if sent_version is None:
            return []
        try:
            parameter_version = self._parameter_version(spec.get("paramKind"))
        except ConfigurationFailure as failure:
            return _rejections_of_failure(spec, f"'{name}'", f"failed to configure policy: {failure}")
        rejections: list[Rejection] = []
        for binding in bindings:
            binding_resources = binding["spec"].get("matchResources")
            if binding_resources is not None and self._find_matched_version(binding_resources, write, versions) is None:
                continue
            policy_text = f"'{name}' with binding '{binding['metadata']['name']}'"
            find_parameters = partial(
                self._parameter_objects, parameter_version, binding["spec"].get("paramRef"), write
            )
            try:
                parameters = await self._objects.converted(find_parameters)
            except ConfigurationFailure as failure:
                rejections += _rejections_of_failure(spec, policy_text, f"failed to configure binding: {failure}")
                continue
            denials = await self._evaluate(policy, parameters, write, sent_version, requested_version)
            rejections += self._apply_actions(binding["spec"]["validationActions"], policy_text, denials)
        return rejections

    def _apply_actions(
        self, actions: Sequence[str], policy_text: str, denials: Sequence["Denial"]
    ) -> "list[Rejection]":
        """The denials as rejections if the actions have Deny; if they have Warn, they become warnings.

        Args:
            actions: `validationActions` of the binding: Deny, Warn, Audit.
            policy_text: the names of policy and binding, for messages.
            denials: of this policy, by this binding.
        """
        context = remote_admission.current()
        if "Warn" in actions:
            for denial in denials:
                warning = f"Validation failed for ValidatingAdmissionPolicy {policy_text}: {denial.message}"
                if warning not in context.warnings:
                    context.warnings.append(warning)
        return [(policy_text, denial) for denial in denials] if "Deny" in actions else []

    def _find_matched_version(
        self, match_resources: Object, write: AdmittedWrite, versions: Sequence[ServedVersion]
    ) -> ServedVersion | None:
        """The version in which a policy or binding gets the objects of a write; None if it does not match.

        Args:
            match_resources: MatchResources of the policy or binding.
            write: the write.
            versions: all versions of its objects, that of the request first.
        """
        selecting = _as_webhook(match_resources, "resourceRules", write)
        if not matching.is_selected(selecting, write, self._objects):
            return None
        excluding = _as_webhook(match_resources, "excludeResourceRules", write)
        if matching.find_version(excluding, write, versions) is not None:
            return None
        if match_resources.get("resourceRules"):
            return matching.find_version(selecting, write, versions)
        return versions[0]  # a binding without rules has those of its policy

    async def _evaluate(
        self,
        policy: Object,
        parameters: Sequence[Object | None],
        write: AdmittedWrite,
        sent_version: ServedVersion,
        requested_version: ServedVersion,
    ) -> "list[Denial]":
        """The validations of a policy that a write fails, for each of the parameters of a binding.

        The policy gets the objects in the version `sent_version`; `requested_version` is that of the request.
        """
        from podscaler.controlplane.apiserver.webhooks import policy_evaluation  # the language takes a while to import

        new, old = await self._objects.converted(
            lambda: [sent_version.converted(obj, write.subresource) for obj in (write.new, write.old)]
        )
        is_namespace = write.resource.key == matching.NAMESPACES
        variables = {
            "object": new,
            "oldObject": old,
            "request": admission_reviews.request_of(write, sent_version, requested_version, acting_user.current()),
            "namespaceObject": None if is_namespace else matching.find_namespace(write, self._objects),
        }
        denials: list[Denial] = []
        for parameter in parameters:
            denials += policy_evaluation.denials(policy["spec"], {**variables, "params": parameter})
        return denials

    def _parameter_version(self, kind: Object | None) -> ServedVersion | None:
        """The served version of a policy's `paramKind` (apiVersion and kind); None without one.

        Raises ConfigurationFailure.
        """
        if kind is None:
            return None
        resources = [resource for resource in self._objects.resources if resource.kind == kind["kind"]]
        for served in (ServedVersion(resource, version) for resource in resources for version in resource.versions):
            if served.api_version == kind["apiVersion"]:
                return served
        kind_text = f"{kind['apiVersion']}, Kind={kind['kind']}"
        raise ConfigurationFailure(f"failed to find resource referenced by paramKind: '{kind_text}'")

    def _parameter_objects(
        self, served: ServedVersion | None, reference: Object | None, write: AdmittedWrite
    ) -> list[Object | None]:
        """The parameter objects of a binding; a single None without parameters.

        Raises ConfigurationFailure; ConversionNeeded, for which `Objects.converted` calls a webhook.

        Args:
            served: the version of the policy's `paramKind`.
            reference: `paramRef` of the binding.
            write: the write, whose namespace is the default one of parameters.
        """
        if served is None or reference is None:
            return [None]
        resource, namespace = served.resource, reference.get("namespace", "")
        if not resource.namespaced and namespace:
            raise ConfigurationFailure("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        if resource.namespaced and not namespace:
            namespace = write.namespace
            if not namespace:
                message = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                raise ConfigurationFailure(message)
        stored = [entry.decode() for entry in self._objects.list(resource.key, namespace).entries]
        parameters: list[Object | None] = [
            served.converted(obj, "") for obj in stored if _is_referenced(obj, reference)
        ]
        if not parameters and reference.get("parameterNotFoundAction") == "Deny":
            raise ConfigurationFailure("no params found for policy binding with `Deny` parameterNotFoundAction")
        return parameters


def _is_referenced(obj: Object, reference: Object) -> bool:
    """Whether a `paramRef` refers to an object, by its name or by a label selector."""
    if reference.get("name"):
        return bool(obj["metadata"]["name"] == reference["name"])
    return selectors.from_label_selector(reference.get("selector") or {}).matches(obj["metadata"].get("labels") or {})


def _as_webhook(match_resources: Object, rules_field: str, write: AdmittedWrite) -> Webhook:
    """MatchResources in the form that `matching` reads; rules that name other objects are left out.

    Args:
        match_resources: of a policy or binding.
        rules_field: the field of the rules: `resourceRules` or `excludeResourceRules`.
        write: the write to match.
    """
    rules = [
        rule
        for rule in match_resources.get(rules_field) or []
        if not rule.get("resourceNames") or write.name in rule["resourceNames"]
    ]
    return Webhook(
        identity=("", 0),  # not read by `matching`
        source={"rules": rules, "matchPolicy": match_resources.get("matchPolicy")},
        authority=b"",
        namespaces=selectors.from_label_selector(match_resources.get("namespaceSelector") or {}),
        labels=selectors.from_label_selector(match_resources.get("objectSelector") or {}),
    )


def _rejections_of_failure(spec: Object, policy_text: str, message: str) -> "list[Rejection]":
    """The rejection of a write by a policy that cannot be applied; none if its failure policy is Ignore."""
    from podscaler.controlplane.apiserver.webhooks import policy_evaluation

    return [] if spec["failurePolicy"] == "Ignore" else [(policy_text, policy_evaluation.Denial(message))]


def _rejection_error(write: AdmittedWrite, policy_text: str, denial: "Denial") -> StatusError:
    """The API error of a denied write; `policy_text` names policy and binding in the message."""
    message = f"ValidatingAdmissionPolicy {policy_text} denied request: {denial.message}"
    error = api_errors.forbidden(write.resource, write.name, message, cause=Cause(reason="", message=message))
    return StatusError(
        error.message,
        code=_CODE_BY_REASON.get(denial.reason, 422),
        reason=denial.reason,
        details=error.details,
        causes=error.causes,
    )
