"""The replica calculator: from metric values to the proposals of single metrics.

Entry points: `per_pod` for metrics of pods, `totals` for Object and External metrics; `samples` converts responses.
Reading order: `calculation_types` (inputs and results), `target_pods`, `pod_groups`, then the calculators.
May import: `core.model` and below.
"""
