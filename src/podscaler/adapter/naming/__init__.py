"""Applies rules to series: the metric's name, the objects that it describes, and the queries for values.

Entry point: `rule_naming.RuleNaming`.
May import: `adapter.config`, `adapter.cluster`, `adapter.go_template`, `adapter.promql`.
Reading order: `series`, `metric_names`, `resource_labels`, `queries`, `rule_naming`.
"""
