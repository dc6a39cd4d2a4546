"""JSON and YAML as a Kubernetes API server reads and writes them, with Go's words for syntax errors.

Reading order: Begin with `json_text`; `yaml_text` turns YAML into the same data.
May import: `base`.
"""
