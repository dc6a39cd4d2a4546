"""`podscaler up`: the control plane of one machine, wired together.

Reading order: `up` is the command; `control_plane` wires the parts; `machine` is the node.
May import: everything below `cli`.
"""
