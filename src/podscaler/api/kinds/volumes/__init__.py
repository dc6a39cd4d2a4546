"""Volumes of pods and PersistentVolumeClaims: validation.

Reading order: `volume_validation` is the entry point.
May import: `api.resource` and below.
"""
