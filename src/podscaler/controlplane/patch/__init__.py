"""The three patch documents that change an object: JSON merge patch, JSON patch and strategic merge patch.

Called by `server.patching`, which parses the document and decodes what comes out. Everything here is pure: arguments
are left as they are (results may share parts with them), and faults are StatusError with upstream's texts.
"""
