"""Processes of the operating system: started, identified, ended, limited.

Reading order: `processes` starts one; `orphaned_processes` ends what an earlier run left.
May import: `base`.
"""
