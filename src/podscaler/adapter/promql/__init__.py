"""Parses PromQL as far as needed to find out whether one query can serve many objects.

Entry point: `partition.is_partitioned`.
May import: nothing else of `adapter`.
Reading order: `lexing`, `parsing`, `partition`.
"""
