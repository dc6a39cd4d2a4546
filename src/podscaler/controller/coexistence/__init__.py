"""Other controllers on the same cluster: standby, comparison of decisions, and migration to and from PodAutoscalers.

Reading order: `standby` decides whether anything is written; `comparison`; `migration` with `counterpart`.
May import: `controller.informers`, `controller.recording`, `controller.telemetry` and below, `explain`, `core`.
"""
