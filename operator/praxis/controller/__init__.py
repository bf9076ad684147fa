"""kopf wiring, work queue, lease, the one status writer, Events, metrics."""
