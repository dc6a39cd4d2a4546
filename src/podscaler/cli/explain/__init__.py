"""`podscaler explain`: why an autoscaler has this many replicas.

Reading order: `explain` is the command; `explain_cluster` and `explain_recording` find the facts.
May import: everything below `cli`.
"""
