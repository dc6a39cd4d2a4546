"""List and watch into a cache: client-go's reflector and store.

Reading order: `watch` is the reflector; `cache` the store.
May import: `kube.client`.
"""
