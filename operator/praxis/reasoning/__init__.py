"""Model routing, prompts, structured output and the tool loop. Knows no Kubernetes and no phase; changes nothing."""
