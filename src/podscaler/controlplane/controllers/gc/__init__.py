"""Garbage collection: dependents, namespaces, old events, finished pods, protected claims.

Reading order: `collector` is the garbage collector.
May import: `controlplane.controllers.framework` and below.
"""
