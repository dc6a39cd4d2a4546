"""Who owns which field of an object: the sets of server-side apply, how they are compared, merged and written.

Begin reading at `updating` (create, update, patch) and `applying` (server-side apply). Everything here is pure.
"""
