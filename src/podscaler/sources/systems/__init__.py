"""The systems from which external metrics are read, a module for each; `podscaler.sources.source_types` names them.

Reading order: `addresses` and `http_client` (what several systems share), then any system. A module imports the client
library of its system at the top, so only the catalog imports these modules, when a source of that type is opened.
May import: `sources.protocol`, `sources.metric_numbers`, `base`.
"""
