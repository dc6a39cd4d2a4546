"""Handlers of requests to resources: reads, writes, patches, deletes, scales, reviews, tokens, the proxy to other
servers.

Reading order: `writes`, `patching` and `applying` follow a write.
May import: `controlplane.apiserver.streaming` and below.
"""
