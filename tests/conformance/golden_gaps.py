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
    "Ingresses are checked for less": (
        "ing-change-00 ing-change-02 ing-change-03 ing-change-05 ing-change-06 ing-spec-00 ing-spec-02 "
        "ing-spec-03 ing-spec-05 ing-spec-06 ing-wrong"
    ),
    "Jobs: changes of the selector, foreground warnings and conditions": (
        "job-change-00 job-change-01 job-change-02 job-change-03 job-change-04 job-change-05 "
        "job-change-06 job-change-07 job-change-08 job-collection job-dry job-life job-spec-08 job-status"
    ),
    "LimitRanges are kept and not checked": (
        "limits-change-00 limits-change-01 limits-change-02 limits-change-03 limits-spec-00 "
        "limits-spec-01 limits-spec-02 limits-spec-03 limits-wrong"
    ),
    "NetworkPolicies are checked for less": ("netpol-change-00 netpol-change-03 netpol-spec-00 netpol-spec-03"),
    "PersistentVolumeClaims have no protecting finalizer, for which no controller is here": (
        "pvc-apply pvc-change-00 pvc-change-01 pvc-change-02 pvc-change-03 pvc-change-04 pvc-change-05 "
        "pvc-collection pvc-dry pvc-generate pvc-life pvc-scale pvc-spec-03 pvc-spec-04 pvc-status"
    ),
    "ResourceQuotas are checked for less": (
        "quota-change-01 quota-change-04 quota-change-06 quota-spec-01 quota-spec-04 quota-spec-06"
    ),
    "pods: priority classes and overhead are not resolved; security contexts, affinity and spread are not checked": (
        "pod-status-5 podspec-21 podspec-50 podspec-60 podspec-61 podspec-62 podspec-63 podspec-65 "
        "podspec-68 podspec-69 template-07"
    ),
    "StatefulSets: texts of changed claims, and warnings": (
        "statefulset-change-02 statefulset-change-14 statefulset-change-15 statefulset-change-16 "
        "statefulset-spec-15 statefulset-spec-16"
    ),
    "Services have one address family, and addresses of this machine": (
        "svc-change-09 svc-change-13 svc-change-15 svc-change-16 svc-change-17 svc-change-19 "
        "svc-change-21 svc-dry svc-external-wrong svc-headless-apply svc-headless-collection "
        "svc-headless-dry svc-headless-generate svc-headless-life svc-headless-put-new svc-headless-scale "
        "svc-headless-status svc-headless-wrong svc-life svc-nodeport-dry svc-nodeport-life "
        "svc-nodeport-wrong svc-spec-15 svc-spec-16 svc-spec-17 svc-spec-19 svc-spec-21 svc-wrong"
    ),
    "smaller things: the text of a refusal, or data compared byte by byte": ("event-wrong pdb-spec-03 revision-life"),
}
"""Cases of the family `kinds` by reason."""

RECORDED_GAPS: dict[str, str] = {
    f"kinds:{name}": reason for reason, names in _KINDS.items() for name in names.split()
} | {
    "update:status-metric-empty-list": "an empty list in a status is stored as no list, so that nothing changes",
}
"""The reason by `FAMILY:CASE` of the project's own captures."""
