"""Reads from the Kubernetes API what the adapter needs: resources by name, and the names of objects.

Entry points: `rest_mapper.RESTMapper`, `object_names.ObjectNames`.
May import: `adapter.config`.
Reading order: `rest_mapper`, `object_names`.
"""
