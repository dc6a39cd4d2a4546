"""What ends a SPDY connection: the other side does not speak the protocol."""


class SPDYProtocolError(Exception):
    """The text says what was wrong with what came."""
