"""Defines the flags of `podscaler adapter`: those of prometheus-adapter, and some that only podscaler has.

`podscaler.cli.commands.adapter` puts `options` on its command and gives the values to `parse`. A new flag: add it to
`options`, to `AdapterOptions` and to `parse`.

Source: prometheus-adapter v0.12.0. Differs: without a serving certificate one is made in memory, not in `--cert-dir`;
flags that change nothing here are accepted and hidden.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from podscaler.adapter.assembly import AdapterSettings
from podscaler.adapter.prometheus.connection import PrometheusSettings
from podscaler.adapter.providers.object_values import Batching
from podscaler.adapter.resource.kubelet_metrics import ScrapeSettings
from podscaler.base.clock import NANOSECONDS, Clock, SystemClock
from podscaler.base.errors import UsageError
from podscaler.cli.options.flags import DURATION, FLOAT64, INT32, FlagType, Option, flag_group, kubeconfig_options
from podscaler.cli.options.kubelet_options import KUBELET_OPTIONS, parse_kubelets
from podscaler.kube.config import locate
from podscaler.kube.transport.config import Config

TEXT = FlagType("text", str)
FILE: click.ParamType[Any] = click.Path(path_type=Path)


options = flag_group(
    Option("config", FILE, None, "the rules, in prometheus-adapter's format"),
    Option("prometheus-url", TEXT, "https://localhost", "the address of Prometheus, perhaps with a path"),
    Option("prometheus-auth-incluster", click.BOOL, None, "use the service account of the pod", is_switch=True),
    Option("prometheus-auth-config", FILE, None, "a kubeconfig whose credentials are used"),
    Option("prometheus-ca-file", FILE, None, "the authorities of Prometheus' certificate"),
    Option("prometheus-client-tls-cert-file", FILE, None, "a client certificate"),
    Option("prometheus-client-tls-key-file", FILE, None, "its key"),
    Option("prometheus-token-file", FILE, None, "a file with a bearer token, read again every minute"),
    Option("prometheus-header", TEXT, None, "NAME=VALUE of a header; may be repeated", is_list=True),
    Option("prometheus-verb", click.Choice(["GET", "POST"]), "GET", "the HTTP method of queries"),
    Option("prometheus-timeout", DURATION, "10s", "the time limit of a query"),
    Option("metrics-relist-interval", DURATION, "10m0s", "how often the series are listed"),
    Option("metrics-max-age", DURATION, "0s", "how old the last sample of a series may be; 0: the interval of lists"),
    Option("query-tick", DURATION, "7.5s", "how long the result of a query is used; 0: each request sends its own"),
    Option("query-batching", click.Choice([*map(str, Batching)]), "auto", "when one query is sent for many objects"),
    Option("secure-port", INT32, "6443", "the port to serve on; 0: a free one"),
    Option("bind-address", TEXT, "0.0.0.0", "the address to serve on"),  # noqa: S104 - the default of the flag upstream
    Option(
        "tls-cert-file",
        FILE,
        None,
        "the serving certificate, read again when it is renewed; default: one made in memory",
    ),
    Option("tls-private-key-file", FILE, None, "its key"),
    kubeconfig_options,
    Option("lister-kubeconfig", FILE, None, "for discovery and lists of objects; default: --kubeconfig"),
    Option("authentication-kubeconfig", FILE, None, "for reviews of tokens; default: --kubeconfig"),
    Option("authorization-kubeconfig", FILE, None, "for reviews of access; default: --kubeconfig"),
    *KUBELET_OPTIONS,
    Option("metric-sources", click.BOOL, None, "serve the MetricSources of the cluster as well", is_switch=True),
    Option("metric-source-folder", FILE, None, "the folder below which MetricSources may read files; default: none"),
    Option("client-qps", FLOAT64, None, "changes nothing", is_hidden=True),
    Option("client-burst", INT32, None, "changes nothing", is_hidden=True),
    Option("cert-dir", FILE, None, "changes nothing", is_hidden=True),
    Option("disable-http2", click.BOOL, None, "changes nothing", is_switch=True, is_hidden=True),
    Option("logtostderr", click.BOOL, None, "changes nothing", is_hidden=True),
    Option("v", INT32, None, "changes nothing: see --verbose", is_hidden=True),
)
"""Puts the flags on a command; give what they set to `parse`."""


@dataclass(frozen=True, slots=True)
class AdapterOptions:
    """The values of the flags.

    Attributes:
        rules_file: the configuration with the rules; None if there are no rules.
        settings: intervals of queries and lists.
        prometheus: the connection to Prometheus; `timeout_s`: the time limit of a query.
        uses_post: whether queries are POST requests.
        host, port: where to serve.
        certificate_files: the serving certificate and its key; None if a certificate is made in memory.
        lister, authentication, authorization: the connections to the API server for lists, for reviews of tokens, and
            for reviews of access.
        kubelets: how kubelets are scraped; None: kubelets are not scraped.
        serves_metric_sources: whether MetricSources are served as external metrics.
        metric_source_folder: the folder below which they may read files; None if no file may be read.
    """

    rules_file: Path | None
    settings: AdapterSettings
    prometheus: PrometheusSettings
    timeout_s: float
    uses_post: bool
    host: str
    port: int
    certificate_files: tuple[Path, Path] | None
    lister: Config
    authentication: Config
    authorization: Config
    kubelets: ScrapeSettings | None = None
    serves_metric_sources: bool = False
    metric_source_folder: Path | None = None


def parse(flag_values: Mapping[str, Any], clock: Clock | None = None) -> AdapterOptions:
    """The options that `flag_values` mean: the values of `options` by click's names.

    Reads kubeconfigs and the file of kubelets' authorities. `clock` is for tokens in files; None: the system's. Raises
    UsageError.
    """
    if flag_values["config"] is None and not flag_values["resource"] and not flag_values["metric_sources"]:
        raise UsageError("--config is needed, the file with the rules, or --resource, or --metric-sources")
    certificate, key = flag_values["tls_cert_file"], flag_values["tls_private_key_file"]
    if (certificate is None) != (key is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file go together")
    if not 0 <= flag_values["secure_port"] <= 65535:
        raise UsageError(f"--secure-port must be between 0 and 65535, but got {flag_values['secure_port']}")
    clock = clock or SystemClock()
    lister = _find_config("lister_kubeconfig", flag_values, clock)
    return AdapterOptions(
        rules_file=flag_values["config"],
        settings=_adapter_settings(flag_values),
        prometheus=_prometheus_settings(flag_values, clock),
        timeout_s=_positive_s("prometheus-timeout", flag_values),
        uses_post=flag_values["prometheus_verb"] == "POST",
        host=flag_values["bind_address"],
        port=flag_values["secure_port"],
        certificate_files=None if certificate is None else (certificate, key),
        lister=lister,
        authentication=_find_config("authentication_kubeconfig", flag_values, clock),
        authorization=_find_config("authorization_kubeconfig", flag_values, clock),
        kubelets=parse_kubelets(flag_values, lister),
        serves_metric_sources=bool(flag_values["metric_sources"]),
        metric_source_folder=flag_values["metric_source_folder"],
    )


def _adapter_settings(flag_values: Mapping[str, Any]) -> AdapterSettings:
    """The settings of the adapter. Raises UsageError for durations that are too small or negative."""
    interval_s = _positive_s("metrics-relist-interval", flag_values)
    max_age_s = flag_values["metrics_max_age"] / NANOSECONDS or interval_s  # 0: not given
    if max_age_s < interval_s:
        raise UsageError("--metrics-max-age must not be less than --metrics-relist-interval")
    if flag_values["query_tick"] < 0:
        raise UsageError("--query-tick must not be negative")
    tick_s = flag_values["query_tick"] / NANOSECONDS
    return AdapterSettings(interval_s, max_age_s, tick_s, Batching(flag_values["query_batching"]))


def _positive_s(name: str, flag_values: Mapping[str, Any]) -> float:
    """The value of a duration flag in seconds. Raises UsageError if it is not positive."""
    value_s: float = flag_values[name.replace("-", "_")] / NANOSECONDS
    if value_s <= 0:
        raise UsageError(f"--{name} must be greater than 0")
    return value_s


def _prometheus_settings(flag_values: Mapping[str, Any], clock: Clock) -> PrometheusSettings:
    """How Prometheus is reached. Raises UsageError for flags that exclude each other, and unusable kubeconfigs."""
    if flag_values["prometheus_auth_incluster"] and flag_values["prometheus_auth_config"]:
        raise UsageError("--prometheus-auth-incluster and --prometheus-auth-config exclude each other")
    cluster = None
    if flag_values["prometheus_auth_incluster"]:
        cluster = locate.in_cluster_config(locate.SERVICE_ACCOUNT, clock)
    elif flag_values["prometheus_auth_config"]:
        cluster = locate.find_config(str(flag_values["prometheus_auth_config"]), None, clock)
    headers = [header.partition("=") for header in flag_values["prometheus_header"]]
    return PrometheusSettings(
        url=flag_values["prometheus_url"],
        ca_file=flag_values["prometheus_ca_file"],
        certificate_file=flag_values["prometheus_client_tls_cert_file"],
        key_file=flag_values["prometheus_client_tls_key_file"],
        token_file=flag_values["prometheus_token_file"],
        headers=tuple((name, header_value) for name, _, header_value in headers),
        cluster=cluster,
    )


def _find_config(name: str, flag_values: Mapping[str, Any], clock: Clock) -> Config:
    """The connection of the kubeconfig flag `name`, else of --kubeconfig and --context. Raises UsageError."""
    own_kubeconfig = flag_values[name]
    if own_kubeconfig:
        return locate.find_config(str(own_kubeconfig), None, clock)
    shared_kubeconfig = flag_values["kubeconfig"]
    return locate.find_config(str(shared_kubeconfig) if shared_kubeconfig else None, flag_values["context"], clock)
