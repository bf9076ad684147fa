"""The function's status as evidence: what the adapter reads, in a thread, as the evidence tools ask for it."""
