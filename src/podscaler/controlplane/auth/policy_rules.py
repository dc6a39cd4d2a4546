"""Evaluates RBAC policy rules: whether a rule allows a request, and whether a set of rules covers another set.

`authorizer` checks whether a request is allowed, `admission.rbac_escalation` whether a user has all rights that it
grants to others; `controllers.cluster.bootstrap` adds missing rules to the default roles. `{verbs: [get], apiGroups:
[apps], resources: [deployments/scale]}` allows to get scales of Deployments only. The functions do no I/O.

Source: the evaluation of rbac.authorization.k8s.io/v1 PolicyRule by kube-apiserver's RBAC authorizer (its VerbMatches
and Covers functions).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from podscaler.api.resource.resources import Object

ALL = "*"


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A PolicyRule of the API; `*` stands for all, lists are in the order of the API object.

    Attributes:
        verbs: such as `get`; for `urls` lower-case HTTP methods.
        groups: `apiGroups`; the core group is empty.
        resources: plurals, or `PLURAL/SUBRESOURCE`.
        names: `resourceNames`: the only objects that the rule applies to; empty for all objects.
        urls: `nonResourceURLs`; a rule has either these or `groups` and `resources`.
    """

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def allows_resource(self, verb: str, group: str, resource: str, subresource: str, name: str) -> bool:
        """Whether the rule allows `verb` on an object of the resource (empty `subresource`: on the resource itself)."""
        if verb not in self.verbs and ALL not in self.verbs:
            return False
        if group not in self.groups and ALL not in self.groups:
            return False
        if self.names and name not in self.names:
            return False
        if ALL in self.resources:
            return True
        if not subresource:
            return resource in self.resources
        return f"{resource}/{subresource}" in self.resources or f"*/{subresource}" in self.resources

    def allows_path(self, verb: str, path: str) -> bool:
        """Whether the rule allows `verb` (a lower-case HTTP method) on a non-resource URL."""
        if not self.urls or (verb not in self.verbs and ALL not in self.verbs):
            return False
        return any(_matches_url(path, url) for url in self.urls)

    def to_object(self) -> Object:
        """The PolicyRule of the API, without empty lists except for `verbs`."""
        fields = {
            "verbs": self.verbs,
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
        }
        return {name: list(values) for name, values in fields.items() if values or name == "verbs"}


def from_object(rule: Object) -> PolicyRule:
    """The rule of a stored role."""
    field_names = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")  # as those of PolicyRule
    return PolicyRule(*(tuple(rule.get(field_name) or ()) for field_name in field_names))


def rules_of(role: Object) -> tuple[PolicyRule, ...]:
    """The rules of a Role or ClusterRole."""
    return tuple(from_object(rule) for rule in role.get("rules") or ())


def _matches_url(path: str, url: str) -> bool:
    """Whether a rule's `url` allows a path; a `*` at its end stands for any ending."""
    if url in (ALL, path):
        return True
    return url.endswith(ALL) and path.startswith(url.rstrip(ALL))


EVERYTHING = (PolicyRule((ALL,), groups=(ALL,), resources=(ALL,)), PolicyRule((ALL,), urls=(ALL,)))
"""The rules of the ClusterRole cluster-admin."""


def find_uncovered(granted: Sequence[PolicyRule], requested: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The parts of `requested` that `granted` does not cover; a part has one verb and one resource, name or URL."""
    parts = [part for rule in requested for part in _split_rule(rule)]
    return [part for part in dict.fromkeys(parts) if not any(_covers(rule, part) for rule in granted)]


def _split_rule(rule: PolicyRule) -> Iterator[PolicyRule]:
    """The rules with one verb and one resource, name or URL that together allow the same as `rule`."""
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                single = PolicyRule((verb,), groups=(group,), resources=(resource,))
                if rule.names:
                    yield from (replace(single, names=(name,)) for name in rule.names)
                else:
                    yield single
    for url in rule.urls:
        yield from (PolicyRule((verb,), urls=(url,)) for verb in rule.verbs)


def _covers(rule: PolicyRule, part: PolicyRule) -> bool:
    """Whether `rule` allows everything that `part` (one of `_split_rule`) allows."""
    if ALL not in rule.verbs and part.verbs[0] not in rule.verbs:
        return False
    if part.urls:
        return any(_matches_url(part.urls[0], url) for url in rule.urls)
    if ALL not in rule.groups and part.groups[0] not in rule.groups:
        return False
    if rule.names and not (part.names and part.names[0] in rule.names):
        return False
    requested = part.resources[0]
    _, slash, subresource = requested.partition("/")
    covering_resources = {ALL, requested, f"*/{subresource}"} if slash else {ALL, requested}
    return not covering_resources.isdisjoint(rule.resources)


def merge_verbs(parts: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Parts of resources that differ in their verb only are merged into one rule, parts of URLs are not; in order."""
    verbs: dict[PolicyRule, list[str]] = {}
    for part in parts:
        key = part if part.urls else replace(part, verbs=())
        verbs.setdefault(key, []).extend(part.verbs)
    return [replace(rule, verbs=tuple(rule_verbs)) for rule, rule_verbs in verbs.items()]


def format_rule(rule: PolicyRule) -> str:
    """A rule as in kube-apiserver's messages: `{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}`."""
    fields = (
        ("APIGroups", rule.groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.urls),
        ("ResourceNames", rule.names),
        ("Verbs", rule.verbs),
    )
    return "{" + ", ".join(f"{name}:{quoted(values)}" for name, values in fields if values) + "}"


def quoted(texts: Iterable[str]) -> str:
    """Texts as Go prints a list of quoted ones: `["a" "b"]`."""
    return "[" + " ".join(json.dumps(text, ensure_ascii=False) for text in texts) + "]"
