"""JSON and YAML as a Kubernetes API server reads and writes them, with Go's syntax errors.

Reading order: `json_text`, then `yaml_text`, which converts YAML to the same data.
May import: `base`.
"""
