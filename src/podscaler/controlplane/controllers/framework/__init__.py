"""What controllers are made of: the control loop, ownership, indexes, templates, errors of writes.

Reading order: `control_loop` first.
May import: `controlplane.registry` and below.
"""
