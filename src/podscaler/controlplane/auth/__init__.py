"""Authentication, authorization by RBAC, service account tokens, audit log.

Reading order: `rules` authorizes; `tokens` authenticates; `policy_index` keeps roles by user.
May import: `controlplane.registry` and below.
"""
