"""podscaler: a Kubernetes HorizontalPodAutoscaler that explains every decision."""

from podscaler.base.version import __version__

__all__ = ["__version__"]
