"""`podscaler up`: the control plane of one machine, wired together.

Reading order: `up` is the command; `control_plane` wires the parts; `machine` is the node, `own_autoscaler` the
autoscaler.
May import: everything below `cli`.
"""
