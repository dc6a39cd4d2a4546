"""`podscaler list`, `doctor` and `timeline`: what autoscalers do, what is wrong with one, and what happened to it.

Reading order: `list_autoscalers` is `podscaler list`.
May import: everything below `cli`.
"""
