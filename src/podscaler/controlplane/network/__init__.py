"""Addresses of pods and Services, the Service proxy (kube-proxy), and the cluster DNS.

Reading order: `addresses`, `cluster_ips` and `node_ports` allocate; `service_proxy`, `balancer`, `port_listener`,
`proxied_connection` and `datagram_listener` forward connections; `cluster_dns`, `dns_server`, `dns_zone`,
`dns_messages`, `dns_forwarding` are the DNS; `kubernetes_service` publishes the API server's own address;
`pod_networks` connects pods that have network namespaces.
May import: `controlplane.controllers.endpoints` and below.
"""
