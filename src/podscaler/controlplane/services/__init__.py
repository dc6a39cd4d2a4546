"""Services: an address for each, the endpoints behind it, and the proxy between the two."""
