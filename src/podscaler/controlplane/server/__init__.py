"""HTTP for the objects: paths, verbs, content types and streams of a Kubernetes API server.

`app.ApiServer` is what the wiring of `up` starts. A request goes through `app` (who, what), `paths` and `routes`
(which resource), `negotiation` (in which form), one handler by verb (`reads`, `writes`, `patching`, `deletes`,
`scales`, `streams`, ...) and comes back as an `answers.Answer`. What objects mean is not decided here.
"""
