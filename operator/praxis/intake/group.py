"""The name of a group's episode: what makes creation idempotent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from praxis.api.base import GROUP
from praxis.digest import digest

GROUP_LABEL: Final = f"{GROUP}/group"
RECEIVER_LABEL: Final = f"{GROUP}/receiver"
DIGITS: Final = 20
"""Hexadecimal digits of the digest in a name: 80 bits, so that no sender finds a second group with the same name."""


@dataclass(frozen=True)
class Group:
    """The alerts that a receiver is told of together."""

    receiver: str
    """A DNS label of at most 32 characters."""
    key: str
    """Alertmanager's groupKey, or the sender's own; any text."""

    @property
    def digest(self) -> str:
        """Hexadecimal digits that stand for receiver and key."""
        return digest([self.receiver, self.key]).removeprefix("sha256:")[:DIGITS]

    @property
    def labels(self) -> dict[str, str]:
        """The labels by which the group's Incidents are found."""
        return {RECEIVER_LABEL: self.receiver, GROUP_LABEL: self.digest}

    @property
    def selector(self) -> str:
        """The same as a label selector."""
        return ",".join(f"{name}={value}" for name, value in self.labels.items())

    def name(self, episode: int) -> str:
        """The name of an episode's Incident: a DNS label."""
        return f"{self.receiver}-{self.digest}-{episode}"

    def episode(self, name: str) -> int:
        """The episode that a name stands for; 0 when it is no name of this group."""
        prefix, _, number = name.rpartition("-")
        mine = prefix == f"{self.receiver}-{self.digest}" and number.isascii() and number.isdecimal()
        return int(number) if mine and number == str(int(number)) else 0
