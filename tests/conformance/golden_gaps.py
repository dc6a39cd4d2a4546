"""Golden captures that our server does not reproduce yet, each with its reason.

Read by test_golden_rest and test_golden_kubectl, which fail for a case that is listed and passes.
"""

_CASES: dict[str, tuple[str, ...]] = {}

GAPS: dict[str, str] = {case: reason for reason, cases in _CASES.items() for case in cases}
"""The reason by `FAMILY:CASE`."""

KUBECTL_GAPS: dict[str, str] = {}
"""The reason by case of kubectl's transcripts."""

TRANSCRIPT_GAPS: dict[str, str] = {}
"""The reason by `FAMILY:CASE` of the project's own transcripts of kubectl."""

_KINDS: dict[str, str] = {
    "upstream stores the labels of a Job and the phase of a claim, which it shows at once, with their first update": (
        "job-status pvc-status"
    ),
    "upstream compares the data byte by byte, not by what they mean": ("revision-life"),
}
"""Cases of the family `kinds` by reason."""

_RULES: dict[str, str] = {
    "rules:gap-cost": "what a rule may cost at most is not estimated when it is made, but bounded when it runs",
    "rules:ratchet-gap-refused-warning": "a refused update does not warn of rules that were broken before",
}
"""Cases of the family `rules`."""

_OWNED = "upstream computes managedFields before webhooks change the object, so that nobody owns their fields"
WEBHOOK_GAPS: dict[str, str] = {
    "a patch": _OWNED,
    "a status: a patch adds a label": _OWNED,
    "a scale: a patch removes the metadata": "upstream forgets with them who owns the replicas",
    "a patch that does not apply": "the error does not say which operation failed",
    "a patch sets a deletion timestamp": "upstream stores an object that is being deleted from the start",
    "an update: a patch removes the uid": "the error does not say which operation failed",
}
"""The reason by case of `webhook_cases`."""

RECORDED_GAPS: dict[str, str] = {
    f"kinds:{name}": reason for reason, names in _KINDS.items() for name in names.split()
} | _RULES
"""The reason by `FAMILY:CASE` of the project's own captures."""
