"""Golden captures that our server does not reproduce yet, each with its reason.

Read by test_golden_rest and test_golden_kubectl, which fail for a case that is listed and passes.
"""

CUSTOM_RESOURCES = "CustomResourceDefinition is not served yet"
DISCOVERY = (
    "the captured server has groups and paths that are not served yet (apiregistration, apiextensions, /metrics)"
)

_CASES: dict[str, tuple[str, ...]] = {
    CUSTOM_RESOURCES: (
        "errors:404-crd",
        "errors:422-crd-name",
        "scale:crd-create-over-maximum",
        "scale:crd-create-unknown-strict",
        "scale:crd-create-wrong-type",
        "scale:crd-generation",
        "scale:crd-get-crd",
        "scale:crd-no-status-subresource",
        "scale:crd-noselector-get",
        "scale:crd-noselector-get-no-replicas",
        "scale:crd-noselector-get-with-status",
        "scale:crd-noselector-put",
        "scale:crd-noselector-put-negative",
        "scale:crd-patch-json",
        "scale:crd-put-name-mismatch",
        "scale:crd-put-over-schema-maximum",
        "scale:crd-scale-absent",
        "scale:crd-scale-managed-fields",
        "scale:crd-selector-get",
        "scale:crd-selector-get-no-replicas",
        "scale:crd-selector-patch-merge-null",
        "scale:crd-selector-put",
        "scale:crd-selector-put-negative",
        "scale:crd-selector-put-stale",
        "scale:crd-status-ignored-on-create",
    ),
    DISCOVERY: (
        "discovery:aggregated-apis-v2-only",
        "discovery:aggregated-no-peer",
        "discovery:apis-post",
        "discovery:apis-trailing-slash",
        "discovery:openapi-v3-index",
        "discovery:root",
    ),
}

GAPS: dict[str, str] = {case: reason for reason, cases in _CASES.items() for case in cases}
"""The reason by `FAMILY:CASE`."""

KUBECTL_GAPS: dict[str, str] = {
    "autoscale-widget": CUSTOM_RESOURCES,
    "get-widgets": CUSTOM_RESOURCES,
    "scale-widget": CUSTOM_RESOURCES,
}
"""The reason by case of kubectl's transcripts."""
