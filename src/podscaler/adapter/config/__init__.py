"""The adapter's configuration, in the format of prometheus-adapter.

Entry point: `loading.load`.
May import: nothing else of `adapter`.
Reading order: `rules`, `yaml_nodes`, `loading`.
"""
