"""A client of the Kubernetes API.

Reading order: From below: `transport`, `client`, `config`, `informers`.
May import: `api`, `base`.
"""
