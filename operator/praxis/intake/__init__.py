"""The HTTP gateway: authenticates senders and turns notifications into Incidents. Knows no model and no action."""
