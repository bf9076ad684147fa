"""What models cost, as third parties list it: informational, never an invoice. An unlisted model counts tokens only.

Source: OpenRouter's and resellers' public lists, read 2026-11-30; Model Studio's own prices differ by region.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens, which is millionths of a dollar per token; `above_input` is where it ends."""

    input: float
    output: float
    cached_input: float | None = None
    above_input: int | None = None


PRICES: dict[str, tuple[Price, ...]] = {
    "qwen3.7-max": (Price(input=2.50, output=7.50, cached_input=0.50),),
    "qwen-flash": (Price(input=0.05, output=0.40, above_input=256_000), Price(input=0.25, output=2.00)),
    "text-embedding-v4": (Price(input=0.07, output=0.0),),
}
"""By model, cheapest band first; the last band has no end."""


def cost_micro_usd(model: str, *, input_tokens: int, cached_tokens: int, output_tokens: int) -> int | None:
    """What a call cost, millionths of a US dollar, rounded up; None when the model's price is not known."""
    bands = PRICES.get(SNAPSHOT.sub("", model.lower().removeprefix("qwen/")))
    if bands is None:
        return None
    price = next(band for band in bands if band.above_input is None or input_tokens <= band.above_input)
    cached = price.input if price.cached_input is None else price.cached_input
    fresh_tokens = max(input_tokens - cached_tokens, 0)
    cost = fresh_tokens * price.input + cached_tokens * cached + output_tokens * price.output
    return math.ceil(round(cost, 6))
