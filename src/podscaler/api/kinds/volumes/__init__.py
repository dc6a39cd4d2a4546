"""Validation of the volumes of pods; the records of PersistentVolume, PersistentVolumeClaim and storage.k8s.io.

Reading order: `volume_validation` is the entry point for the volumes of pods; `persistentvolume`,
`persistentvolumeclaim` and `storage_kinds` have the records.
May import: `api.resource` and below.
"""
