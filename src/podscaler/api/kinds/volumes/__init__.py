"""Validation of the volumes of pods, and the record of PersistentVolumeClaim.

Reading order: `volume_validation` is the entry point for volumes; `persistentvolumeclaim` is the record of claims.
May import: `api.resource` and below.
"""
