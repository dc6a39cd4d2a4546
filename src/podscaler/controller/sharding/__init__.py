"""Several controllers share the autoscalers: assignment of shards to members.

Reading order: `sharding` is the member; `assignment` are the pure rules.
May import: `controller.leaderelection`.
"""
