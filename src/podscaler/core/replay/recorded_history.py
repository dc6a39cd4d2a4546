"""What an autoscaler remembers, as recordings write it: with texts for instants.

The recorder of the controller calls `written`, the replay `read`. One is the inverse of the other.

Source: docs/recordings.md.
"""

from podscaler.api.machinery import instants
from podscaler.api.typed import recording
from podscaler.core.model.history import History, Recommendation, ScaleEvent


def written(history: History) -> recording.RecordedHistory:
    """The history, for a line of a recording."""
    return recording.RecordedHistory(
        tuple(
            [
                recording.RecordedRecommendation(each.replicas, instants.exact(each.at))
                for each in history.recommendations
            ]
        ),
        tuple([_written_event(each) for each in history.scale_ups]),
        tuple([_written_event(each) for each in history.scale_downs]),
    )


def read(wire: recording.RecordedHistory) -> History:
    """The history in a line of a recording. Raises ValueError for a time that cannot be read."""
    return History(
        tuple([Recommendation(each.replicas, instants.parse(each.time)) for each in wire.recommendations]),
        tuple([_read_event(each) for each in wire.scale_ups]),
        tuple([_read_event(each) for each in wire.scale_downs]),
    )


def _written_event(event: ScaleEvent) -> recording.RecordedScaleEvent:
    return recording.RecordedScaleEvent(event.change, instants.exact(event.at), event.is_outdated)


def _read_event(wire: recording.RecordedScaleEvent) -> ScaleEvent:
    return ScaleEvent(wire.change, instants.parse(wire.time), wire.outdated)
