"""The Common Expression Language as Kubernetes speaks it: from text to a checked program that judges plain data."""
