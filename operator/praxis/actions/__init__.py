"""The catalogue of actions and the one that is real. Knows the target's service; knows no Kubernetes and no model."""
