"""Controllers that delete: garbage collector, namespaces, expired Events, finished pods, protected claims.

Reading order: `collector` is the garbage collector, `owners` its rules; the others are independent.
May import: `controlplane.controllers.framework` and below.
"""
