"""The form in which steps are told: sections of labelled lines."""

from podscaler.core.model.trace import Step


class Line(Step, frozen=True, gc=False):
    """One line: what it is about, and what there is to say."""

    label: str
    text: str


class Section(Step, frozen=True, gc=False):
    """Lines that belong together."""

    title: str
    lines: tuple[Line, ...]
