"""The HTTP API server (the place of kube-apiserver).

Reading order: `app` starts it; `auth_filter` authenticates and authorizes; `dispatch` finds the handler of a request in
`handlers` or `streaming`; `http` has what they share.
May import: `controlplane.aggregator`, `controlplane.admission`, `controlplane.controllers.cluster` and below.
"""
