"""HTTP/1.1 over TLS, proxies, pools, rate limits: the one seam to the network.

Reading order: `transport` is the protocol; `http_transport` the implementation.
May import: `api`, `base`.
"""
