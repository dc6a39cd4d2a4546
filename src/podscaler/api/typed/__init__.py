"""API objects as msgspec structs, with only those fields that decisions and recordings use.

Reading order: `autoscaling` and `pods` are read by the controller, `recording` by recordings.
May import: `api.machinery` and below.
"""
