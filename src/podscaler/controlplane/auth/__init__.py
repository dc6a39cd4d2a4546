"""Authentication of tokens, authorization by RBAC, impersonation, service account tokens, the audit log.

Reading order: `authenticator` and `account_tokens`; `authorizer`, `policy_index`, `policy_rules`; `impersonation`.
May import: `controlplane.registry` and below.
"""
