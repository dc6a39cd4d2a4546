"""List and watch into a cache: client-go's reflector and store.

Reading order: `cache` is the store of objects, `reflector` fills it.
May import: `kube.client`.
"""
