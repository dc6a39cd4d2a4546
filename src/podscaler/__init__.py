"""podscaler: a Kubernetes HorizontalPodAutoscaler that explains every decision."""

__version__ = "0.1.0"
