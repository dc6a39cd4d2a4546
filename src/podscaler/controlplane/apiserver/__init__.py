"""The HTTP API server.

Reading order: `app` starts it; `auth_filter` authenticates and authorizes; `dispatch` finds the handler of a request.
May import: `controlplane.aggregator`, `controlplane.admission`, `controlplane.controllers.cluster` and below.
"""
