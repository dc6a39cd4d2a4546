"""Handlers of resource requests: reads, writes, patches, deletes, subresources, reviews, the proxy to other servers.

Reading order: `reads`; `writes`, `patching` and `server_side_apply` follow a write; `json_patch` and `strategic_merge`
are pure. May import: `controlplane.apiserver.streaming` and below.
"""
