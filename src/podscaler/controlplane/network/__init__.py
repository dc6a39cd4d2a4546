"""Addresses of pods and Services, the Service proxy (kube-proxy), and the cluster DNS.

Reading order: `addresses` and `cluster_ips` allocate; `proxy`, `balancer`, `listener`, `proxied_connection` forward
connections; `cluster_names`, `server`, `zone`, `messages`, `resolvers` are the DNS.
May import: `controlplane.controllers.endpoints` and below.
"""
