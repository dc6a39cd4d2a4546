"""Objects of every cluster: namespaces, RBAC roles, tokens, APIServices; and kinds of CustomResourceDefinitions.

Reading order: `bootstrap` and `namespace_defaults` create objects at the start; `custom_resources` serves definitions.
May import: `controlplane.auth`, `controlplane.controllers.framework` and below.
"""
