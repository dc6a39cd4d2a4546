"""All rules, in the order of their ids.

Called by `linter` and by whoever lists them. The rule about annotations stands here because it must know all others.
"""

from collections.abc import Iterator

from podscaler.lint.model.findings import Rule, RuleFinding, Severity
from podscaler.lint.model.items import IGNORE_ANNOTATION
from podscaler.lint.model.lint_context import Material
from podscaler.lint.rules import (
    behavior,
    bounds,
    conflicts,
    metrics,
    ownership,
    quotas,
    reach,
    requests,
    served,
    targets,
    validity,
    versions,
)


def _unknown(material: Material) -> Iterator[RuleFinding]:
    known = {rule.id for rule in RULES}
    for item in material.items:
        for name in item.ignored:
            if name not in known:
                yield RuleFinding(
                    item,
                    f"metadata.annotations[{IGNORE_ANNOTATION}]",
                    f"{name!r} is no rule, so the annotation switches nothing off by it",
                    "write ids such as PSL005, separated by commas",
                )


IGNORED = Rule(
    "PSL022",
    "unknown-rule",
    Severity.WARNING,
    f"The annotation {IGNORE_ANNOTATION} names a rule that does not exist.",
    _unknown,
)

RULES: tuple[Rule, ...] = (
    validity.REFUSED,
    requests.REQUESTS,
    targets.UNSCALABLE,
    targets.MISSING,
    quotas.MINIMUM,
    ownership.REPLICAS,
    metrics.TOTALS,
    conflicts.SELECTORS,
    conflicts.AUTOSCALERS,
    behavior.EFFECT,
    behavior.ROUNDING,
    reach.TOLERANCE,
    conflicts.VERTICAL,
    served.METRICS,
    bounds.EQUAL,
    bounds.ONE_STEP,
    reach.UTILIZATION,
    validity.ZERO,
    versions.REMOVED,
    requests.CONTAINERS,
    metrics.MEMORY,
    behavior.SHORT,
    IGNORED,
    quotas.MAXIMUM,
    behavior.LONG,
    metrics.UNMEASURED,
)
