"""The node: runs the pods that are bound to this machine as real processes (`node_agent` is the entry)."""
