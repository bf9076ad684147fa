"""The resources as frozen pydantic models, and what is rendered from them. Knows no client, no clock, no phase."""
