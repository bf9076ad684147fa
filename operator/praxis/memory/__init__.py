"""Semantic memory of resolved incidents: one interface, and the stores behind it."""
