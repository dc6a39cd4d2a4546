"""For the HTTPS servers of podscaler: TLS certificates, and authentication and authorization by the API server.

Entry points: `delegated_access.DelegatedAccess`, `front_proxy.FrontProxyAuthentication`, `serving_certificate`.
Reading order: `serving_certificate`, `delegated_access`, `front_proxy`.
May import: `kube.client` and below.
"""
