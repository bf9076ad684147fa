"""What the demo prints. Text from alerts, models and the API server is printed as it is, never as markup."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from praxis.api.incident import Result
from praxis.machine import Phase

STYLES = {
    Phase.AWAITING_APPROVAL: "bold yellow",
    Phase.EXECUTING: "bold cyan",
    Phase.RESOLVED: "bold green",
    Phase.FAILED: "bold red",
    Phase.RECONCILIATION_REQUIRED: "bold red",
}


class Screen:
    """A console."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def chapter(self, title: str) -> None:
        """A heading."""
        self._console.print()
        self._console.rule(Text(title, style="bold"), align="left")

    def say(self, text: str) -> None:
        """A sentence."""
        self._console.print(Text(text))

    def item(self, text: str) -> None:
        """A fact."""
        self._console.print(Text(f"  • {text}"))

    def phase(self, phase: Phase, message: str) -> None:
        """An incident has come to a phase."""
        line = Text("  → ")
        line.append(f"{phase:<24}", style=STYLES.get(phase, "bold"))
        line.append(message)
        self._console.print(line)

    def outcome(self, result: Result, message: str) -> None:
        """How an action ended."""
        line = Text("  • outcome ")
        line.append(result, style="bold green" if result is Result.APPLIED else "bold red")
        line.append(f": {message}")
        self._console.print(line)

    def refusal(self, attempt: str, message: str) -> None:
        """The API server said no."""
        self._console.print(Text(f"  ✗ {attempt}", style="bold"))
        self._console.print(Text(f"    {message}", style="red"))

    def simulated(self, text: str) -> None:
        """Something that a person would do."""
        self._console.print(Text(f"  ⚠ {text}", style="bold magenta"))

    def command(self, command: str, output: str) -> None:
        """A command and what it printed."""
        self._console.print(Text(f"$ {command}", style="bold blue"))
        self._console.print(Text(output.rstrip()), soft_wrap=True)
