"""Configuration of API clients: kubeconfig files, in-cluster configuration, credential plugins.

Reading order: `locate` finds the configuration; `kubeconfig` reads it.
May import: `kube.transport`, `kube.client`.
"""
