"""Quotas, limits, disruption budgets, priority and runtime classes, roles and their bindings.

Reading order: Each module is one kind.
May import: `api.kinds.pods` and below.
"""
