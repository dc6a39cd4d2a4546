"""SPDY/3.1 as a server speaks it, without sockets: what port-forwarding clients send through a WebSocket."""
