"""`podscaler lint`: findings about manifests and clusters, in several output formats.

Reading order: `lint` is the command.
May import: everything below `cli`.
"""
