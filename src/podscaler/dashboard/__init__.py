"""The dashboard's server: sessions, the JSON routes, server-sent events and the page's files.

Entry point: `server.DashboardServer`. Reading order: `sessions` (who may see what), `security` (checks and headers of
every request), `routes`, `event_stream`, `server`.
May import: `observe`, `kube`, `api` and `base`.
"""
