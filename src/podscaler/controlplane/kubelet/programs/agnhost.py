"""The images `agnhost` and `resource-consumer`: chooses the program by the first argument and runs it.

It runs as the process of a container, by the command line in `kubelet.launching.images`: `agnhost.py SUBCOMMAND
[FLAGS]`. Python is started without site-packages, so the package's own folder is added to the search path, from which
the subcommand's module is imported.

Source: test/images/agnhost of Kubernetes v1.37: names of subcommands; `pause` is the default.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final

PACKAGE: Final = "podscaler.controlplane.kubelet.programs"
SUBCOMMANDS: Final = {
    "crd-conversion-webhook": ("webhooks", "main"),
    "entrypoint-tester": ("agnhost", "print_arguments"),
    "external-metrics": ("external_metrics", "main"),
    "guestbook": ("guestbook", "main"),
    "liveness": ("serve_hostname", "liveness_main"),
    "logs-generator": ("logs_generator", "main"),
    "mounttest": ("mounttest", "main"),
    "netexec": ("netexec", "main"),
    "resource-consumer-controller": ("resource_consumer_controller", "main"),
    "serve-hostname": ("serve_hostname", "main"),
    "test-service-account-issuer-discovery": ("issuer_discovery", "main"),
    "test-webserver": ("serve_hostname", "web_server_main"),
    "webhook": ("webhooks", "main"),
}
"""The name of a subcommand -> its module and the function that takes its flags and returns the exit status.

A new subcommand: an entry here. Two others are cases of `run`: `pause`, and CONSUMER, which starts further processes.
"""
CONSUMER: Final = "resource-consumer"
PAUSE_STATUS: Final = {signal.SIGINT: 1, signal.SIGTERM: 2}
"""The exit status of `pause` by the signal that ended it."""


def pause() -> int:
    """Wait for SIGINT or SIGTERM; returns 1 or 2."""
    signals = set(PAUSE_STATUS)
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    print("Paused\nSignals registered", flush=True)
    received = signal.Signals(signal.sigwait(signals))
    go_names = {signal.SIGINT: "interrupt", signal.SIGTERM: "terminated"}
    message = f'exiting because of signal "{go_names[received]}"\n'
    path = os.environ.get("TERMINATION_MESSAGE_PATH")
    if path:
        with suppress(OSError):
            Path(path).write_text(message, encoding="utf-8")
    print(message, end="", flush=True)
    return PAUSE_STATUS[received]


def print_arguments(args: Sequence[str]) -> int:
    """Print the command line as Go prints a list; returns 0."""
    print(f"[{' '.join(('/agnhost', 'entrypoint-tester', *args))}]", flush=True)
    return 0


def run(command: Sequence[str], args: Sequence[str]) -> int:
    """Run the subcommand `args[0]`; returns the exit status, 1 for an unknown one.

    Args:
        command: the command line that runs this program in a process of its own, without its arguments.
        args: the subcommand and its flags; `pause` if empty.
    """
    name = args[0] if args else "pause"
    if name == "pause":
        return pause()
    if name == CONSUMER:
        module = import_module(f"{PACKAGE}.resource_consumer")
        return int(module.main(args[1:], [*command, CONSUMER]))
    if name not in SUBCOMMANDS:
        print(
            f'Error: unknown command "{name}" for "app": podscaler has {", ".join(subcommand_names())}', file=sys.stderr
        )
        return 1
    module_name, function_name = SUBCOMMANDS[name]
    function: Callable[[Sequence[str]], int] = getattr(import_module(f"{PACKAGE}.{module_name}"), function_name)
    return function(args[1:])


def subcommand_names() -> list[str]:
    """The names of all subcommands."""
    return sorted([*SUBCOMMANDS, CONSUMER, "pause"])


if __name__ == "__main__":
    own_file = Path(__file__).resolve()
    source_folder = own_file.parents[len(PACKAGE.split("."))]
    sys.path.insert(0, str(source_folder))
    sys.exit(run((sys.executable, "-I", "-S", str(own_file)), sys.argv[1:]))
