"""Bodies of scrapes that nobody foresaw: samples, or one error."""

from hypothesis import given
from hypothesis import strategies as st

from podscaler.controlplane.metrics.scraped import exposition
from podscaler.controlplane.metrics.scraped.exposition import ExpositionError

NAMES = ["a", "a_total", "_bucket", "histogram", "summary", "counter", "le", "quantile"]
SIGNS = ["{", "}", '"', "=", ",", " ", "\n", "# TYPE ", "# HELP ", "# EOF", "\\", "# {", "\t", "é", "\x00"]
NUMBERS = ["1", "-2.5", "NaN", "+Inf", "1e400", "0x1"]
PIECES = st.sampled_from([*NAMES, *SIGNS, *NUMBERS])
BODIES = st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=60)
TYPES = st.sampled_from(["", "text/plain", "application/openmetrics-text; version=1.0.0", "text/html"])


@given(BODIES, TYPES)
def test_a_body_has_samples_or_is_an_error(body: str, content_type: str) -> None:
    """Nothing else escapes, and every value can be told by the API."""
    try:
        samples = exposition.parse(body, content_type, 0.0)
    except ExpositionError:
        return
    assert all(abs(each.value) < exposition.VALUE_MAX for each in samples)
