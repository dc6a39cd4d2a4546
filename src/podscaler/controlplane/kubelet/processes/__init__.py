"""Processes of the operating system: started, watched, limited by cgroups, identified and killed.

Entry points: `processes.start`, `orphaned_processes.OrphanKiller`, `cgroups.set_up`.
Reading order: `processes`; `streams`; `descriptors`; `process_identity`; `orphaned_processes`.
May import: `api.machinery`, `base`.
"""
