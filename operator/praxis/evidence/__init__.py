"""Read-only tools that the model may call, and their bounds. Nothing here can write: the client refuses other verbs."""
