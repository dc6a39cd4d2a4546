"""Histories that outlive the process, kept in ConfigMaps.

Reading order: `store` is the interface, `config_map_store` keeps histories; `history_record` is the format.
May import: `controller.leaderelection`, `kube`, `core`, `api`, `base`.
"""
