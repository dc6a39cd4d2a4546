"""Admission of objects before they are stored: LimitRanges, classes of pods, service accounts, escalation of rights.

Reading order: Each module is one admission step.
May import: `controlplane.registry` and below.
"""
