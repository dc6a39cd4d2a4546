"""Volumes of pods: files of ConfigMaps, Secrets and tokens, and the environment of containers.

Reading order: `volumes` makes them; `volume_files` has their content.
May import: `controlplane.kubelet.launching` and below.
"""
