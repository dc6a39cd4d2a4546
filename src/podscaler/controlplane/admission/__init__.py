"""Admission plugins: check and complete objects before they are stored (limits, quotas, classes, accounts, escalation).

Reading order: any; each module is one admission plugin, which registers itself with `registry.objects`. A new plugin: a
module with a function `register` that calls `Objects.add_admission`, and its call in `cli.up.control_plane`.
May import: `controlplane.auth`, `controlplane.registry` and below.
"""
