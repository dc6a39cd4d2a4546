"""`podscaler explain`: why an autoscaler has this many replicas.

Reading order: `explain` is the command; `explain_cluster` and `explain_recording` read the facts and explain;
`explain_request` is what both share; `assumed_controller` and `managing_controller` describe the controller.
May import: everything below `cli`.
"""
