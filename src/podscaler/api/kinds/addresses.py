"""The rule for IP addresses.

Called by the validation of pods, services and endpoint slices.

Source: upstream's message; `ipaddress`.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address

FAULT = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def find(text: str) -> IPv4Address | IPv6Address | None:
    """The address that the text is, None for any other text."""
    try:
        return ip_address(text)
    except ValueError:
        return None
