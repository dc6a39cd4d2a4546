"""What every cluster has: namespaces, roles, tokens, APIServices, and kinds of CustomResourceDefinitions.

Reading order: `bootstrap` and `namespace_defaults` make objects; `custom_resources` serves definitions.
May import: `controlplane.auth`, `controlplane.controllers.framework` and below.
"""
