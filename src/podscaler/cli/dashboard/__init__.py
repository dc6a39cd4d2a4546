"""`podscaler dashboard`: the autoscalers of a cluster in a browser.

Reading order: `dashboard` is the command; `dashboard_run` serves; `cluster_watch` decides about the
cluster; `served_history` reads recordings; `bearer_viewers` opens viewers that log in with a token.
May import: everything below `cli`.
"""
