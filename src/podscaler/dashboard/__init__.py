"""The dashboard's server: sessions, the JSON routes, server-sent events and the page's files.

Entry point: `server.DashboardServer`. Reading order: `viewers` (who may see what), `sessions`, `security` (checks and
headers), `event_stream`, `report_folder` and `static_files`, `server`.
May import: `observe`, `controller.options`, `kube`, `api` and `base`.
"""
