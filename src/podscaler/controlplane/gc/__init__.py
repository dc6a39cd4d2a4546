"""What removes objects: dependents of gone owners, the content of deleted namespaces, old events."""
