"""The flight recorder: the full records behind the trail, each kept under its digest.

A trail entry is short; what it binds by digest is kept here, outside the Incident's status: the documents of the
entries themselves, the evidence, and every model run. `contract` is the interface, `sqlite` the embedded store,
`stores.open_recorder` chooses by the settings; `tests/recorder/test_contract.py` holds what every store must do.

Records are only ever added. A record without an entry (a refused write, an attempt that failed) is harmless and goes
with its incident; an entry without its record is named by `praxis trail verify`.
"""
