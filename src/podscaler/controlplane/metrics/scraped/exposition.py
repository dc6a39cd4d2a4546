"""Parses a scraped body, in Prometheus' text format or OpenMetrics, to samples; called by `scraped.scraper`. Pure.

Samples of counters, and the `_count` and `_sum` of histograms and summaries, have `is_counter`; gauges and untyped
samples do not. Buckets, quantiles, and values that are not finite or exceed `VALUE_MAX` are left out. If several
samples have one name and the same labels, the first one counts, as with Prometheus. The line

    http_requests_total{code="200"} 17

becomes ExposedSample("http_requests", (("code", "200"),), 17.0, is_counter=True).

Source: the exposition formats (Prometheus documentation, OpenMetrics 1.0). Counters lose `_total`, as in the default
rules of the Prometheus adapter, unless the body has a gauge of that name; a sample whose name ends in `_total` is a
counter, whatever its declared type. Which types are served, and how, is decided in `_served_samples`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families
from prometheus_client.samples import Sample as ParsedSample

SAMPLES_MAX: Final = 10_000
"""The most samples of one pod; more are an error, as with Prometheus' sample_limit."""
AGE_MAX_S: Final = 300
"""Samples that carry an older timestamp are left out: Prometheus' look-back."""
VALUE_MAX: Final = 2**63 / 1000
"""The greatest value that a quantity represents in thousandths (int64); greater ones are left out."""
OPENMETRICS: Final = "application/openmetrics-text"

_TOTAL_SUFFIX: Final = "_total"
_CUMULATIVE_SUFFIXES: Final = {"histogram": ("_count", "_sum"), "summary": ("_count", "_sum")}
_OMITTED_TYPES: Final = frozenset({"info", "stateset", "gaugehistogram"})
_SERVED_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:.-]*")
"""Names that are served: those without quotes, and quoted ones with dots and hyphens, as OpenTelemetry has them."""

Labels = tuple[tuple[str, str], ...]
"""Label names and values, sorted by name."""


class ExpositionError(ValueError):
    """The body is in neither format, or has too many samples; str() is the reason."""


@dataclass(frozen=True, slots=True)
class ExposedSample:
    """One sample of a scraped body.

    Attributes:
        metric: the name of the custom metric; `_total` is removed unless a gauge has the shorter name.
        labels: the sample's labels.
        value: the value as scraped; a counter's is the sum so far.
        is_counter: whether the value is cumulative, so that the custom metric is its rate.
    """

    metric: str
    labels: Labels
    value: float
    is_counter: bool


def parse(body: str, content_type: str, now_s: float) -> list[ExposedSample]:
    """The samples of a body.

    Args:
        body: the body of the pod's response.
        content_type: of the response; it tells OpenMetrics from the text format.
        now_s: seconds since the epoch, for samples with timestamps.

    Raises:
        ExpositionError: the body cannot be parsed, or has more than SAMPLES_MAX samples.
    """
    is_openmetrics = content_type.strip().lower().startswith(OPENMETRICS)
    families = openmetrics_families if is_openmetrics else text_families
    samples: list[ExposedSample] = []
    try:
        for count, (family_type, sample) in enumerate(_typed_samples(families(body)), 1):
            if count > SAMPLES_MAX:
                raise ExpositionError(f"it has more than {SAMPLES_MAX} samples")
            samples.extend(_served_samples(family_type, sample, now_s))
    except ExpositionError:
        raise
    except (ValueError, KeyError, IndexError, TypeError) as error:  # what prometheus_client raises for a bad line
        raise ExpositionError(f"it cannot be read: {error}") from error
    return list(_distinct_samples(samples))


def _distinct_samples(samples: Sequence[ExposedSample]) -> Iterator[ExposedSample]:
    """The first sample of each metric and labels; a counter that would have a gauge's name keeps `_total`."""
    gauges = {sample.metric for sample in samples if not sample.is_counter}
    yielded: set[tuple[str, Labels]] = set()
    for sample in samples:
        keeps_suffix = sample.is_counter and sample.metric in gauges
        metric = f"{sample.metric}{_TOTAL_SUFFIX}" if keeps_suffix else sample.metric
        if (metric, sample.labels) not in yielded:
            yielded.add((metric, sample.labels))
            yield replace(sample, metric=metric) if keeps_suffix else sample


def _typed_samples(families: Iterable[Metric]) -> Iterator[tuple[str, ParsedSample]]:
    """Each sample with the type of its metric family."""
    return ((family.type, sample) for family in families for sample in family.samples)


def _served_samples(family_type: str, sample: ParsedSample, now_s: float) -> Iterator[ExposedSample]:
    """The sample as it is served; nothing if it is left out."""
    is_in_range = abs(sample.value) < VALUE_MAX  # False for NaN too
    if family_type in _OMITTED_TYPES or not _SERVED_NAME.fullmatch(sample.name) or not is_in_range:
        return
    if sample.timestamp is not None and now_s - float(sample.timestamp) > AGE_MAX_S:
        return
    labels = tuple(sorted(sample.labels.items()))
    if sample.name.endswith(_TOTAL_SUFFIX) and len(sample.name) > len(_TOTAL_SUFFIX):
        yield ExposedSample(sample.name.removesuffix(_TOTAL_SUFFIX), labels, float(sample.value), is_counter=True)
    elif family_type in _CUMULATIVE_SUFFIXES:
        if sample.name.endswith(_CUMULATIVE_SUFFIXES[family_type]):
            yield ExposedSample(sample.name, labels, float(sample.value), is_counter=True)
    elif family_type != "counter":  # what a counter has besides its total is the time of its creation
        yield ExposedSample(sample.name, labels, float(sample.value), is_counter=False)
