"""Addresses, Service proxy, DNS.

Reading order: `proxy` and `cluster_ips`; `server` is the name server.
May import: `controlplane.controllers.endpoints` and below.
"""
