"""Stores the histories of autoscalers in ConfigMaps, so that they outlive the process.

Reading order: `store` is the interface, `config_map_store` the implementation; `history_record` is the format.
May import: `controller.leaderelection`, `kube`, `core`, `api`, `base`.
"""
