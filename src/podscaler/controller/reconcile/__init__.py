"""One sync of one autoscaler: observe, decide, write scale, status and events.

Reading order: `reconcile` is the entry point; `observe` collects facts; `state` is what is remembered.
May import: `controller.coexistence` and below.
"""
