"""Golden captures that our server does not reproduce yet, each with its reason.

Read by test_golden_rest and test_golden_kubectl, which fail for a case that is listed and passes.
"""

_CASES: dict[str, tuple[str, ...]] = {}

GAPS: dict[str, str] = {case: reason for reason, cases in _CASES.items() for case in cases}
"""The reason by `FAMILY:CASE`."""

KUBECTL_GAPS: dict[str, str] = {}
"""The reason by case of kubectl's transcripts."""

RECORDED_GAPS: dict[str, str] = {
    "update:status-metric-empty-list": "an empty list in a status is stored as no list, so that nothing changes",
}
"""The reason by `FAMILY:CASE` of the project's own captures."""
