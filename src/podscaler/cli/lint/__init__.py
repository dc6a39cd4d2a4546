"""`podscaler lint`: findings about manifests and clusters, in several output formats.

Reading order: `lint` is the command; `lint_files` and `cluster_reader` read objects; `lint_output` and `lint_sarif`
write.
May import: everything below `cli`.
"""
