"""Histories that outlive the process, kept in ConfigMaps.

Reading order: `store` is the protocol, `config_map_store` its implementation; `history_record` is the format.
May import: `controller.options` and below.
"""
