"""Volumes and environment of containers: files and variables from ConfigMaps, Secrets, tokens, Services and the pod.

Entry points: `volumes.prepare`, `volumes.prepare_mounts`, `environment.environment`.
Reading order: `references` (single values); `environment`; `volume_files` (files as data); `volumes` (on disk);
`name_files` (resolv.conf and hosts).
May import: `controlplane.kubelet.launching` and below.
"""
