"""The controller's flags: defaults, syntax, and the sentence for each value that cannot be used."""

import re

import click
import pytest
from click.testing import CliRunner

from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import UsageError
from podscaler.cli.options import settings
from podscaler.controller.options.feature_gates import FeatureGates
from podscaler.controller.options.settings import ControllerSettings
from podscaler.core.model.emulation import V1_38
from podscaler.metrics.heapster import HeapsterService

SYNC_PERIOD = "--horizontal-pod-autoscaler-sync-period"
TOLERANCE = "--horizontal-pod-autoscaler-tolerance"
REST_CLIENTS = "--horizontal-pod-autoscaler-use-rest-clients"
WORKERS = "--concurrent-horizontal-pod-autoscaler-syncs"


def _parsed(*arguments: str) -> ControllerSettings:
    found: list[ControllerSettings] = []

    @click.command()
    @settings.controller_options
    def command(**options: object) -> None:
        found.append(settings.parse_settings(options))

    result = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return found[0]


def test_defaults() -> None:
    """Without flags everything is as in kube-controller-manager."""
    assert _parsed() == ControllerSettings()


def test_every_flag() -> None:
    """Each flag sets its setting."""
    prefix = "--horizontal-pod-autoscaler"
    assert _parsed(
        f"{WORKERS}=0x10",
        f"{prefix}-sync-period=2s",
        f"{prefix}-downscale-stabilization",
        "1m30s",
        f"{prefix}-tolerance=0.05",
        f"{prefix}-cpu-initialization-period=0",
        f"{prefix}-initial-readiness-delay=-1ms",
        "--feature-gates=HPAScaleToZero=false,HPAGeneration=true",
    ) == ControllerSettings(
        concurrent_syncs=16,
        sync_period_ns=2 * NANOSECONDS,
        downscale_stabilization_ns=90 * NANOSECONDS,
        tolerance=0.05,
        cpu_initialization_period_ns=0,
        initial_readiness_delay_ns=-1_000_000,
        gates=FeatureGates({"HPAScaleToZero": False, "HPAGeneration": True}),
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            [f"{SYNC_PERIOD}=15"],
            f'invalid argument "15" for "{SYNC_PERIOD}" flag: time: missing unit in duration "15"',
        ),
        ([f"{SYNC_PERIOD}=0"], "horizontal-pod-autoscaler-sync-period must be greater than 0, but got 0s"),
        (
            [f"{TOLERANCE}=much"],
            f'invalid argument "much" for "{TOLERANCE}" flag: strconv.ParseFloat: parsing "much": invalid syntax',
        ),
        ([f"{WORKERS}=0"], "concurrent-horizontal-pod-autoscaler-syncs must be greater than 0, but got 0"),
        (
            [f"{WORKERS}=2147483648"],
            f'invalid argument "2147483648" for "{WORKERS}" flag: '
            'strconv.ParseInt: parsing "2147483648": value out of range',
        ),
        (
            [f"{WORKERS}=five"],
            f'invalid argument "five" for "{WORKERS}" flag: strconv.ParseInt: parsing "five": invalid syntax',
        ),
        (
            [f"{WORKERS}=08"],
            f'invalid argument "08" for "{WORKERS}" flag: strconv.ParseInt: parsing "08": invalid syntax',
        ),
        (["--feature-gates=HPAGeneration"], "--feature-gates: missing bool value for HPAGeneration"),
        (
            ["--feature-gates=HPAGeneration=maybe"],
            '--feature-gates: invalid value of HPAGeneration=maybe: "maybe" is neither true nor false',
        ),
        (
            ["--feature-gates=HPAConfigurableTolerance=false"],
            "--feature-gates: cannot set feature gate HPAConfigurableTolerance to false, feature is locked to true",
        ),
    ],
)
def test_unusable_values(arguments: list[str], sentence: str) -> None:
    """A value that cannot be used is one sentence, in the words of upstream's flag parser."""
    with pytest.raises(UsageError) as caught:
        _parsed(*arguments)
    assert str(caught.value) == sentence


def test_an_unknown_gate_lists_the_known() -> None:
    """A misspelt gate never passes as switched off."""
    with pytest.raises(UsageError, match=r"unrecognized feature gate: HPAGenerations \(known: HPAConfigurable"):
        _parsed("--feature-gates=HPAGenerations=true")


def test_all_beta_sets_the_beta_gates() -> None:
    """AllBeta stands for each gate in beta; a later entry overrides it."""
    gates = _parsed("--feature-gates=AllBeta=false,HPAGeneration=true").gates
    states = [gates.enabled(name) for name in ("HPAScaleToZero", "HPAGeneration", "HPAConfigurableTolerance")]
    assert states == [False, True, True]


def test_gates_accumulate() -> None:
    """The flag given twice adds to the first; a later entry of the same gate counts."""
    gates = _parsed(
        "--feature-gates=HPAScaleToZero=false,HPAGeneration=false",
        "--feature-gates=HPAGeneration=true,PodLevelResources=false",
    ).gates
    assert gates.chosen == {"HPAScaleToZero": False, "HPAGeneration": True, "PodLevelResources": False}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param((), None, id="the metrics APIs"),
        pytest.param((REST_CLIENTS + "=true",), None, id="the default, given"),
        pytest.param((REST_CLIENTS + "=false",), HeapsterService(), id="Heapster where it usually is"),
        pytest.param(
            (
                REST_CLIENTS + "=false",
                "--heapster-namespace=monitoring",
                "--heapster-service=h",
                "--heapster-scheme=https",
                "--heapster-port=api",
                "--heapster-url=http://10.1.2.3:8082/",
            ),
            HeapsterService("monitoring", "h", "https", "api", "http://10.1.2.3:8082"),
            id="Heapster elsewhere",
        ),
    ],
)
def test_where_metrics_come_from(arguments: tuple[str, ...], expected: HeapsterService | None) -> None:
    """The flag of releases 1.6 to 1.10 chooses Heapster, the others its place."""
    assert _parsed(*arguments).heapster == expected


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ("--heapster-url=ftp://h", "must begin with http:// or https:// and a host"),
        ("--heapster-url=http://me:secret@h", "must have no user, query and fragment"),
        ("--heapster-url=http://h:99999", "invalid port"),
        ("--heapster-scheme=gopher", 'must be "http" or "https"'),
        ("--heapster-service=../x", "a lowercase RFC 1123 label"),
        ("--heapster-port=a/b", "must be the name or the number of a port"),
    ],
)
def test_wrong_places_of_heapster(argument: str, text: str) -> None:
    """A place that no request could be sent to is an error at the start."""
    with pytest.raises(UsageError, match=re.escape(text)):
        _parsed(argument)


@pytest.mark.parametrize(
    ("arguments", "period_s"),
    [((), 15), (("--algorithm=v1.1",), 30), (("--algorithm=v1.1", f"{SYNC_PERIOD}=10s"), 10)],
    ids=["current", "v1.1", "given"],
)
def test_the_period_of_an_algorithm(arguments: tuple[str, ...], period_s: int) -> None:
    """The algorithm of v1.1 looks every 30 s unless told otherwise."""
    assert _parsed(*arguments).sync_period_s == period_s


def test_flags_of_older_releases() -> None:
    """Algorithm, cooldowns and the emulated version reach the decisions."""
    prefix = "--horizontal-pod-autoscaler"
    decision = _parsed(
        "--algorithm=v1.1", f"{prefix}-upscale-delay=1m", f"{prefix}-downscale-delay=0", "--emulate=1.38.2"
    ).decision
    assert (decision.algorithm, decision.upscale_delay_ns, decision.downscale_delay_ns, decision.emulation) == (
        "v1.1",
        60 * NANOSECONDS,
        0,
        V1_38,
    )


@pytest.mark.parametrize(
    ("arguments", "namespaces"),
    [
        ((), ("kube-system", "kube-system")),
        (("--history-namespace=autoscaling",), ("autoscaling", "autoscaling")),
        (("--history=memory",), (None, "kube-system")),
        (("--history=memory", "--history-namespace=autoscaling"), (None, "autoscaling")),
    ],
    ids=["in the cluster", "elsewhere in it", "in memory", "in memory, published elsewhere before"],
)
def test_where_histories_are_kept(arguments: tuple[str, ...], namespaces: tuple[str | None, str]) -> None:
    """In the cluster, unless upstream's behaviour is asked for; the namespace is that of the settings in any case."""
    parsed = _parsed(*arguments)
    assert (parsed.history_namespace, parsed.settings_namespace) == namespaces


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--history=disk", 'invalid argument "disk" for "--history" flag: must be "cluster" or "memory"'),
        ("--algorithm=v1.2", 'invalid argument "v1.2" for "--algorithm" flag: \'v1.2\' is not one of current, v1.1'),
        ("--emulate=1.36", 'invalid argument "1.36" for "--emulate" flag: Kubernetes 1.36 is not one of 1.37, 1.38'),
        ("--history-namespace=A", 'invalid argument "A" for "--history-namespace" flag: a lowercase RFC 1123 label'),
    ],
)
def test_places_that_make_no_sense(argument: str, said: str) -> None:
    """The sentence names flag and value."""
    with pytest.raises(UsageError, match=re.escape(said)):
        _parsed(argument)
