"""Facts about the Kubernetes API as files, read through `podscaler.api.schema.schema` and `descriptions` only."""
