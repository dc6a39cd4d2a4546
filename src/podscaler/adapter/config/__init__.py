"""The adapter's configuration, in the format of prometheus-adapter.

Entry point: `config_file.load`.
May import: nothing else of `adapter`.
Reading order: `rules`, `yaml_nodes`, `config_file`.
"""
