"""From metric values to desired replicas: the replica calculator.

Reading order: `per_pod` for pods' metrics, `totals` for the others.
May import: `core.model` and below.
"""
