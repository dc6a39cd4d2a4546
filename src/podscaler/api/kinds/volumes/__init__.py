"""Volumes of pods, and PersistentVolumeClaims.

Reading order: `volume_validation` is the entry point for volumes; `persistentvolumeclaim` is the record of claims.
May import: `api.resource` and below.
"""
