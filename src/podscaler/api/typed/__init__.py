"""Typed API objects, trimmed to the fields that decisions and recordings use.

Reading order: `autoscaling` and `pods` are read by the controller, `recording` by recordings.
May import: `api.machinery` and below.
"""
