"""Volumes and environment of containers: what they get from ConfigMaps, Secrets, tokens, Services and their pod.

Entry points: `volumes.prepare`, `volumes.mounts`, `environment.environment`.
Reading order: `references` (single values); `environment`; `volume_files` (files as data); `volumes` (on disk).
May import: `controlplane.kubelet.launching` and below.
"""
