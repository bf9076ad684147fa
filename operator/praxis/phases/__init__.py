"""One module for each phase that has work to do: facts in, a decision out. Nothing here or below knows kopf."""
