"""What every cluster has before anybody makes anything: namespaces, default accounts, the Service of the API server."""
