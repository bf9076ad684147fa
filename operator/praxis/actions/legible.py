"""Text of a service, fit for a field of status."""

from __future__ import annotations

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def legible(text: str) -> str:
    """One line without what cannot be shown: control and format characters, and lone surrogates, which have no UTF-8
    form, so that no status could hold them."""
    return "".join(each if each.isprintable() else REPLACEMENT for each in text)
