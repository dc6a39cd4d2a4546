"""A client of the Kubernetes API, and what servers of ours need of it.

Reading order: From below: `transport`, `client`, `config`, `informers`, `serving`.
May import: `api`, `base`.
"""
