"""Volumes and environment of containers: files and variables from ConfigMaps, Secrets, tokens, Services and the pod.

Entry points: `volumes.prepare`, `volumes.mounts`, `environment.environment`.
Reading order: `references` (single values); `environment`; `volume_files` (files as data); `volumes` (on disk).
May import: `controlplane.kubelet.launching` and below.
"""
