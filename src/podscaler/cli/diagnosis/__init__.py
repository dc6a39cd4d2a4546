"""`podscaler list`, `doctor` and `timeline`: what autoscalers do, what is wrong with one, and what happened to it.

Reading order: `list_autoscalers` is `podscaler list`. `doctor` is `podscaler doctor`: `findings`, then the pure checks
(`metric_checks`, `pod_checks`, `scale_writers`, `capacity_checks`, `events`), `autoscaler_objects` and `examination`.
`timeline` is `podscaler timeline`: `timeline_entries`, `recorded_timeline`, `cluster_timeline`.
May import: everything below `cli`.
"""
