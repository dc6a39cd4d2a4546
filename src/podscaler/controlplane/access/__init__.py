"""Who may talk to the API server, and how they know that it is the right one: certificates, tokens, users, rules.

Called by the wiring of `up` (files, in a thread) and by `server` (per request). Secrets are files of mode 0600 and
never logged.
"""
