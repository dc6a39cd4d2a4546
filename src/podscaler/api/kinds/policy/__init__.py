"""The records of quotas, limits, disruption budgets, priority and runtime classes, roles, webhooks and policies.

Reading order: each module has the record and the validation of one or two kinds; `quota_usage` measures objects; the
webhooks are validated by `webhook_validation`, whose expressions `admission_expressions` compiles.
May import: `api.kinds.apps` and below.
"""
