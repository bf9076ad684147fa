"""Read-only tools that the model may call, and their bounds. Nothing here can write: the client refuses other verbs.

`toolbox` is what the tool loop is given: it checks arguments, holds time limits, and makes one `Observation` of
whatever comes, also of an outage. `cluster`, `prometheus` and `functions` each read one source and say what they saw as
lines of text; `observation` redacts, digests and cuts them, in this order. Knows neither models nor phases.
"""
