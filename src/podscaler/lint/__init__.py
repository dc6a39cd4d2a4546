"""What is wrong or dangerous in manifests and in the objects of a cluster, around autoscalers.

`podscaler lint` reads files and clusters; everything here is pure. Begin reading at `linter`; docs/lint.md has a
section for each rule.
"""
