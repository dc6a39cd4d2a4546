"""Golden captures that our server does not reproduce yet, each with its reason.

Read by test_golden_rest and test_golden_kubectl, which fail for a case that is listed and passes.
"""

_CASES: dict[str, tuple[str, ...]] = {}

GAPS: dict[str, str] = {case: reason for reason, cases in _CASES.items() for case in cases}
"""The reason by `FAMILY:CASE`."""

KUBECTL_GAPS: dict[str, str] = {}
"""The reason by case of kubectl's transcripts."""

_KINDS: dict[str, str] = {
    "DaemonSets keep the annotation with the generation of their template as any other annotation": (
        "daemonset-status-put ds-life ds-status"
    ),
    "Jobs: changes of the selector, foreground warnings and conditions": ("job-status"),
    "PersistentVolumeClaims have no protecting finalizer, for which no controller is here": ("pvc-status"),
    "pods: priority classes and overhead are not resolved; security contexts, affinity and spread are not checked": (
        "pod-status-5 podspec-50"
    ),
    "Services have one address family, and addresses of this machine": (
        "svc-change-09 svc-change-13 svc-change-15 svc-change-16 svc-change-17 svc-change-19 svc-change-21 "
        "svc-dry svc-external-wrong svc-headless-apply svc-headless-collection svc-headless-dry "
        "svc-headless-generate svc-headless-life svc-headless-put-new svc-headless-scale svc-headless-status "
        "svc-headless-wrong svc-nodeport-dry svc-nodeport-wrong svc-spec-15 svc-spec-16 svc-spec-17 "
        "svc-spec-19 svc-spec-21 svc-wrong"
    ),
    "smaller things: the text of a refusal, or data compared byte by byte": ("revision-life"),
}
"""Cases of the family `kinds` by reason."""

RECORDED_GAPS: dict[str, str] = {
    f"kinds:{name}": reason for reason, names in _KINDS.items() for name in names.split()
} | {
    "update:status-metric-empty-list": "an empty list in a status is stored as no list, so that nothing changes",
}
"""The reason by `FAMILY:CASE` of the project's own captures."""
