"""`podscaler demo`: a workload under load, scaled up and down.

Reading order: `demo` is the command; `demo_scenario` the protocol of what it shows; `web_scenario`, `queue_scenario`
and `requests_scenario` the scenarios; `demo_stage` the objects; `local_server` starts servers; `load` makes requests.
May import: everything below `cli`.
"""
