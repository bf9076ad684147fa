"""What stands in place of a secret."""

from __future__ import annotations

import re
from typing import Final

REDACTED: Final = re.compile(r"\[REDACTED:[a-z0-9-]{1,40}\]")
"""What a marker looks like; such text is never redacted again."""


def marker(name: str) -> str:
    """What stands in place of a secret of that name, for example `[REDACTED:aws-access-key]`."""
    return f"[REDACTED:{name}]"
