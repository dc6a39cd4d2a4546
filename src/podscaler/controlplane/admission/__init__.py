"""Admission of objects before they are stored: LimitRanges, classes of pods, service accounts, privilege escalation.

Reading order: any; each module is one admission plugin, which registers itself with `registry.objects`.
May import: `controlplane.auth`, `controlplane.registry` and below.
"""
