"""The records of quotas, limit ranges, disruption budgets, priority and runtime classes, roles and their bindings.

Reading order: each module has the record and the validation of one or two kinds; `quota_usage` measures objects.
May import: `api.kinds.apps` and below.
"""
