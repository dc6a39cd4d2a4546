"""Evaluates `spec.podFailurePolicy` and `spec.successPolicy` of a Job.

`job_view`, `job_verdict`, `pod_templates` and `pod_tracking` call it. Rules are tried in order; the first that matches
decides. Jobs, pods and rules are JSON objects of batch/v1 and core/v1. A new requirement of a rule: a case in
`_match_cause` or `_is_success_rule_met`; a new action: `FailureMatch` and its readers.
Source: KEP-3329, KEP-3998.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.batch import completion_indexes
from podscaler.controlplane.controllers.framework import selection


@dataclass(frozen=True, slots=True)
class FailureMatch:
    """The action of the failure policy for a failed pod.

    Attributes:
        action: of the rule that matches: Ignore, Count, FailIndex or FailJob; None if no rule does.
        message: why the Job fails; empty for other actions than FailJob.
    """

    action: str | None = None
    message: str = ""

    @property
    def is_counted(self) -> bool:
        """Whether the failure counts towards the back-off limits."""
        return self.action != "Ignore"


def match(job: Object, pod: Object) -> FailureMatch:
    """The action for a failed pod, by the first rule of the Job's `podFailurePolicy` that matches it."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or []
    for position, rule in enumerate(rules):
        cause = _match_cause(rule, pod)
        if cause:
            action = rule["action"]
            message = f"{cause} matching {action} rule at index {position}"
            return FailureMatch(action, message if action == "FailJob" else "")
    return FailureMatch()


def _match_cause(rule: Object, pod: Object) -> str:
    """The first part of the message for a rule that matches; empty if it does not."""
    if rule.get("onExitCodes") is not None:
        return _exit_code_cause(rule["onExitCodes"], pod)
    full_name = "/".join(selection.key_of(pod))
    for condition in (pod.get("status") or {}).get("conditions") or []:
        for pattern in rule.get("onPodConditions") or []:
            if (condition["type"], condition["status"]) == (pattern["type"], pattern.get("status", "True")):
                return f"Pod {full_name} has condition {condition['type']}"
    return ""


def _exit_code_cause(pattern: Object, pod: Object) -> str:
    """The first part of the message for the container whose exit code matches `onExitCodes`; empty if none does."""
    status, full_name = pod.get("status") or {}, "/".join(selection.key_of(pod))
    for container in [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]:
        exit_code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode")
        # as upstream, a container that runs or ended with 0 matches no rule, not even NotIn
        if exit_code and _matches_exit_code(pattern, container["name"], exit_code):
            return f"Container {container['name']} for pod {full_name} failed with exit code {exit_code}"
    return ""


def _matches_exit_code(pattern: Object, container_name: str, exit_code: int) -> bool:
    """Whether `onExitCodes` of a rule (`operator` In or NotIn, `values`, maybe `containerName`) matches."""
    if pattern.get("containerName") not in (None, container_name):
        return False
    is_listed = exit_code in (pattern.get("values") or [])
    return bool(is_listed == (pattern["operator"] == "In"))


def fail_job_message(job: Object, failed_pods: Iterable[Object]) -> str:
    """Why the failure policy fails the Job, by one of its failed pods; empty if it does not."""
    messages = (match(job, pod).message for pod in failed_pods)
    return next(filter(None, messages), "")


def success_message(job: Object, succeeded_indexes: frozenset[int]) -> str:
    """`Matched rules at index 0` if the success policy is met by the succeeded indexes; empty if it is not."""
    spec = job["spec"]
    if not succeeded_indexes:
        return ""
    rules = (spec.get("successPolicy") or {}).get("rules") or []
    for position, rule in enumerate(rules):
        if _is_success_rule_met(rule, succeeded_indexes, spec["completions"]):
            return f"Matched rules at index {position}"
    return ""


def _is_success_rule_met(rule: Object, succeeded_indexes: frozenset[int], completions: int) -> bool:
    """Whether all `succeededIndexes` of a rule succeeded, or `succeededCount` of them (of all, if it names none)."""
    required_count = rule.get("succeededCount")
    if rule.get("succeededIndexes") is None:
        return required_count is not None and len(succeeded_indexes) >= required_count
    intervals = completion_indexes.parse_intervals(rule["succeededIndexes"], completions)
    named_count = sum(map(len, intervals))
    if named_count == 0:  # all indexes of the rule are beyond `completions`
        return False
    succeeded_count = completion_indexes.count_within(succeeded_indexes, intervals)
    return succeeded_count == named_count or (required_count is not None and succeeded_count >= required_count)
