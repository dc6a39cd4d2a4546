"""Lint rule about manifests that set the replicas which an autoscaler owns (PSL005).

`podscaler.lint.rulebook` lists it. Every apply of such a manifest resets the replicas. In a cluster the rule reads
kubectl's last-applied annotation and the managedFields of server-side apply.

Source: the documentation of HorizontalPodAutoscaler, on migrating workloads to horizontal autoscaling.
"""

from collections.abc import Iterator

from podscaler.api.schema import decoding
from podscaler.api.text.json_text import DecodeError
from podscaler.lint.model.findings import RuleFinding, Severity, rule
from podscaler.lint.model.lint_context import LintContext, LintedAutoscaler
from podscaler.lint.model.linted_item import Item, mapping, mappings, text

LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_FIELD = "spec.replicas"


@rule("PSL005", "replicas-in-manifest", Severity.WARNING, "A manifest sets the replicas that an autoscaler owns.")
def replicas_in_manifest(context: LintContext) -> Iterator[RuleFinding]:
    """PSL005: a manifest, or an applied configuration, that sets the replicas of an autoscaler's target."""
    for autoscaler in context.autoscalers:
        target = autoscaler.target
        writer = _find_writer(target) if target and not target.api_errors else ""
        if target and writer:
            yield _finding(autoscaler, target, writer)


def _finding(autoscaler: LintedAutoscaler, target: Item, writer: str) -> RuleFinding:
    """The finding for a manifest that sets the replicas of an autoscaler's target."""
    if mapping(target.written.get("spec")).get("replicas") == 0 and autoscaler.min_replicas:
        effect = f"0 switches {autoscaler.item.full_name} off"
    else:
        effect = f"each apply undoes what {autoscaler.item.full_name} decided"
    return RuleFinding(
        target,
        _FIELD,
        f"replicas is set by {writer}: {effect}",
        f"remove {_FIELD} from the manifest",
        other_item=autoscaler.item,
    )


def _find_writer(target: Item) -> str:
    """What sets the replicas of an object, as the message names it; empty if nothing sets them."""
    if not target.origin.is_live:
        return "the manifest" if "replicas" in mapping(target.written.get("spec")) else ""
    meta = mapping(target.written.get("metadata"))
    if "replicas" in mapping(_last_applied(meta).get("spec")):
        return "kubectl apply (its last-applied annotation has it)"
    for managed_fields_entry in mappings(meta.get("managedFields")):
        fields = mapping(mapping(managed_fields_entry.get("fieldsV1")).get("f:spec"))
        if managed_fields_entry.get("operation") == "Apply" and "f:replicas" in fields:
            return f"the applied configuration of {text(managed_fields_entry.get('manager'))}"
    return ""


def _last_applied(meta: dict[str, object]) -> dict[str, object]:
    """The object that kubectl applied last; empty without a readable annotation."""
    written = text(mapping(meta.get("annotations")).get(LAST_APPLIED_ANNOTATION))
    try:
        return mapping(decoding.parse_json(written.encode())) if written else {}
    except DecodeError:
        return {}
