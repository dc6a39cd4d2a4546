"""Evaluates `spec.podFailurePolicy` and `spec.successPolicy` of a Job.

`job_view` and `job_verdict` call it. Rules are tried in order; the first that matches decides.
Source: KEP-3329, KEP-3998.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.batch import completion_indexes


@dataclass(frozen=True, slots=True)
class FailureMatch:
    """What the failure policy says about a failed pod.

    Attributes:
        action: of the rule that matches: Ignore, Count, FailIndex or FailJob; None if no rule does.
        message: why the Job fails; empty for other actions than FailJob.
    """

    action: str | None = None
    message: str = ""

    @property
    def counts(self) -> bool:
        """Whether the failure counts towards the back-off limits."""
        return self.action != "Ignore"


def match(job: Object, pod: Object) -> FailureMatch:
    """The match of the failure policy of a Job, which may have none, with a pod."""
    for position, rule in enumerate((job["spec"].get("podFailurePolicy") or {}).get("rules") or []):
        cause = _cause(rule, pod)
        if cause:
            action = rule["action"]
            message = f"{cause} matching {action} rule at index {position}"
            return FailureMatch(action, message if action == "FailJob" else "")
    return FailureMatch()


def _cause(rule: Object, pod: Object) -> str:
    """The first part of the message for a rule that matches; empty if it does not."""
    full_name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    status = pod.get("status") or {}
    codes = rule.get("onExitCodes")
    if codes is not None:
        for container in [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]:
            code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode") or 0
            if code and _matches_code(codes, container["name"], code):
                return f"Container {container['name']} for pod {full_name} failed with exit code {code}"
        return ""
    for condition in status.get("conditions") or []:
        for pattern in rule.get("onPodConditions") or []:
            if (condition["type"], condition["status"]) == (pattern["type"], pattern.get("status", "True")):
                return f"Pod {full_name} has condition {condition['type']}"
    return ""


def _matches_code(codes: Object, container: str, code: int) -> bool:
    if codes.get("containerName") not in (None, container):
        return False
    return bool((code in (codes.get("values") or [])) == (codes["operator"] == "In"))


def fail_job_message(job: Object, failed: Iterable[Object]) -> str:
    """Why the failure policy fails the Job, by one of its failed pods; empty if it does not."""
    return next((matched.message for pod in failed if (matched := match(job, pod)).message), "")


def success_message(job: Object, succeeded: frozenset[int]) -> str:
    """`Matched rules at index 0` if the success policy is met by the succeeded indexes; empty if it is not."""
    spec = job["spec"]
    for position, rule in enumerate((spec.get("successPolicy") or {}).get("rules") or [] if succeeded else []):
        count = rule.get("succeededCount")
        wanted = None
        if rule.get("succeededIndexes") is not None:
            wanted = completion_indexes.parse_indexes(rule["succeededIndexes"], spec["completions"])
            if not wanted:
                continue
        reached = succeeded if wanted is None else succeeded & wanted
        if reached == wanted or (count is not None and len(reached) >= count):
            return f"Matched rules at index {position}"
    return ""
