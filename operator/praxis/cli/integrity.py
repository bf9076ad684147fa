"""What a person's own machine can check before they sign: that what is shown is what the digests bind."""

from __future__ import annotations

from praxis.cli.cluster import Found
from praxis.cli.verification import verify


def faults(found: Found) -> list[str]:
    """Every way in which the stored incident is not what it claims to be; a plan with one must not be approved."""
    return verify(found.document).problems
