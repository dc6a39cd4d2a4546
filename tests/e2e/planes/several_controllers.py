"""Controllers of ours that a test starts and ends itself, in the place of the stage's own."""

import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from stage import Stage, end
from up_process import eventually

from own_ports import own_place
from patience import WITHIN_S

NAME = "podscaler-controller"
"""The Lease of the leader, and the beginning of the shards' and the members'."""


class Controllers:
    """Ours on a stage whose own controller is away meanwhile."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._places: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *flags: str, readiness: str = "ok") -> Path:
        """One more; its log. Returns when /readyz says that, among other things perhaps."""
        place = "{}:{}".format(*own_place())
        self._places[place] = self._stage.spawn(f"--metrics-bind-address={place}", *flags)
        log = self._stage.log
        eventually(lambda: readiness in self._answer(place, "/readyz"))
        return log

    def leader(self) -> "subprocess.Popen[bytes] | None":
        """The one whose metrics say that it leads; None while none does."""
        wanted = f'leader_election_master_status{{name="{NAME}"}} 1.0'
        return next((each for place, each in self._places.items() if wanted in self._answer(place, "/metrics")), None)

    def held(self) -> list[int]:
        """How many shards each that is alive holds, by its own metrics, in order."""
        answers = [self._answer(place, "/metrics") for place, each in self._places.items() if each.poll() is None]
        return sorted(sample(answer, "podscaler_shards_held") for answer in answers)

    def metric(self, name: str) -> int:
        """A metric of the one that was started last, by its full name; -1 where it is not there."""
        return sample(self._answer(next(reversed(self._places)), "/metrics"), name)

    def end(self, process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
        """End one."""
        process.send_signal(number)
        assert process.wait(WITHIN_S) == (0 if number is signal.SIGTERM else -number)

    def first(self) -> "subprocess.Popen[bytes]":
        """The one that was started first."""
        return next(iter(self._places.values()))

    def close(self) -> None:
        """End those that are still there."""
        for process in self._places.values():
            if process.poll() is None:
                end(process)

    def _answer(self, place: str, path: str) -> str:
        try:
            with urllib.request.urlopen(f"http://{place}{path}", timeout=WITHIN_S) as response:
                text: str = response.read().decode()
                return text
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.read().decode()
        except OSError:
            return ""


def sample(text: str, name: str) -> int:
    """The value of a metric by its full name; -1 where it is not there."""
    values = [line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")]
    return int(float(values[0])) if values else -1
