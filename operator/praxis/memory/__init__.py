"""Semantic memory of resolved incidents: one interface, and the stores behind it.

One module for each store: `contract` is the interface, `sqlite` the embedded store, `stores.open_memory` chooses by
the settings. Another store is another module and another line there; `tests/memory/test_contract.py` holds what every
store must do. `vectors` checks what the embedding model answers, `record` writes down an incident. Nothing here knows
phases or models.
"""
