"""Text of others on a person's terminal. Evidence, alerts and model answers may hold anything, escape sequences too.

A terminal that obeys what is quoted could hide a line of the plan that somebody is about to approve. So whatever comes
from a resource or a server goes through `plain`, and no console here reads markup.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from typing import IO

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erase
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC strings
    r"|\x1b[ -/]*[0-~]"  # the other two- and three-byte sequences
)
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that steer a terminal or hide text: controls, bidirectional and zero-width marks, separators."""
NARROW, WIDE = 100, 10_000


def plain(text: str) -> str:
    """The text without anything that a terminal would obey; line breaks and tabs stay."""
    shown = ESCAPES.sub("", text.replace("\r\n", "\n"))
    return "".join(each for each in shown if each in "\n\t" or unicodedata.category(each) not in INVISIBLE)


def line(text: str) -> str:
    """`plain`, on one line: a quoted name cannot pretend to be the next line of what is shown."""
    return " ".join(plain(text).split())


def moment(timestamp: str) -> str:
    """A stored time for people: to the second."""
    return re.sub(r"\.\d+(?=Z|[+-])", "", line(timestamp))


class Screen:
    """Prints styled paragraphs. On a terminal they wrap; into a file or a pipe each is one long line, for grep."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        out = stream or sys.stdout
        self.interactive = out.isatty()
        self._console = Console(
            file=out, markup=False, highlight=False, emoji=False, width=None if self.interactive else WIDE
        )

    def heading(self, text: str) -> None:
        """A title, after an empty line."""
        self._console.print()
        self._console.print(Text(text, style="bold"))

    def paragraph(self, text: str, *, style: str = "", indent: int = 2) -> None:
        """A paragraph of trusted words; quote others' through `plain` or `line` before."""
        self._console.print(Padding(Text(text, style=style, tab_size=4), (0, 0, 0, indent), expand=False))

    def field(self, name: str, value: str, *, style: str = "") -> None:
        """`name  value`, unless the value is empty. The value may be anybody's text."""
        if value:
            text = Text(f"{name:<12} ", style="dim").append(Text(line(value), style=style))
            self._console.print(Padding(text, (0, 0, 0, 2), expand=False))

    def quote(self, text: str, *, limit: int | None = None, indent: int = 6) -> None:
        """Somebody else's text, marked by a bar at each line so that it cannot pass for ours; at most `limit` lines."""
        lines = plain(text).splitlines() or [""]
        for each in lines[:limit]:
            self._console.print(Padding(Text(f"│ {each}", style="dim"), (0, 0, 0, indent), expand=False))
        if limit is not None and len(lines) > limit:
            self.paragraph(f"│ … {len(lines) - limit} more lines; praxis show -o wide shows them", indent=indent)

    def warn(self, text: str) -> None:
        """Something that must not be missed."""
        self.paragraph(f"! {text}", style="bold red")
