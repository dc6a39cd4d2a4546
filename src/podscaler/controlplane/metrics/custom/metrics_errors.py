"""API errors of the metrics APIs, with the messages of upstream's adapters; raised by `lookup` and `apis`.

Source: the custom metrics API server library, observed; its Statuses have no `details`.
Differs: the message for an unknown external metric always ends with "for namespaces"; the adapter for Prometheus does
so in the namespace `default` only.
"""

from podscaler.api.machinery.selectors import Selector
from podscaler.base.errors import StatusError


def no_metric(metric: str, subject: str) -> StatusError:
    """404: no object of the kind (`pods`, `deployments.apps`) has the metric."""
    return _not_found(f"the server could not find the metric {metric} for {subject}")


def no_value(metric: str, subject: str, name: str, selector: Selector) -> StatusError:
    """404: the object does not have the metric, or not with labels that `selector` matches."""
    message = f"the server could not find the metric {metric} for {subject} {name}"
    return _not_found(f"{message} with selector {selector}" if selector.requirements else message)


def no_such_path() -> StatusError:
    """404: the metrics APIs have no such path."""
    message = "the server could not find the requested resource"
    return StatusError(message, code=404, reason="NotFound", details={})


def bad_selector(message: str) -> StatusError:
    """400: an invalid selector."""
    return StatusError(message, code=400, reason="BadRequest")


def _not_found(message: str) -> StatusError:
    return StatusError(message, code=404, reason="NotFound")
