"""The HTTP API server: started, stopped and wired here.

Reading order: `app` starts it; `dispatch` finds the handler of a request; `auth_filter` authenticates.
May import: all other packages below it.
"""
