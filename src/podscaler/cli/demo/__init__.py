"""`podscaler demo`: a web service under load, scaled up and down.

Reading order: `demo` is the command; `demo_scene` what it shows; `load` makes requests.
May import: everything below `cli`.
"""
