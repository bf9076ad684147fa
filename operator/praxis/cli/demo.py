"""`praxis demo`: the whole life of an incident on this machine, without any account."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
from rich.console import Console


@click.command()
@click.option("--yes", is_flag=True, help="Ask nothing: approve as a demo person, and say that it is simulated.")
@click.option(
    "--json", "report", type=click.Path(dir_okay=False, path_type=Path), help="Write what happened to this file."
)
@click.option("--keep", is_flag=True, help="Leave everything running at the end, until Ctrl-C.")
def command(yes: bool, report: Path | None, keep: bool) -> None:
    """Show the whole life of an incident.

    Starts a real kube-apiserver and etcd, installs PRAXIS, runs gateway and operator as their own service accounts,
    emulates Function Compute, and lets a scripted model reason (labelled as scripted: it is not Qwen). Exits with 0
    when all of it happened. Ctrl-C stops everything.
    """
    from praxis.controlplane.errors import ControlPlaneError
    from praxis.demo.screen import Screen
    from praxis.demo.story import on_a_terminal

    signal.signal(signal.SIGTERM, interrupted)
    console = Console(soft_wrap=True)
    ask = not yes and on_a_terminal()
    outcome: dict[str, Any] = {"ok": False, "incidents": [], "refusals": []}
    try:
        perform(Screen(console), outcome, ask=ask, keep=keep)
    except ControlPlaneError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        console.print("\nstopped; nothing is left running")
        sys.exit(130)
    finally:
        if report is not None:
            partial = report.with_suffix(".partial")
            partial.write_text(json.dumps(outcome, indent=2) + "\n")
            partial.replace(report)
    sys.exit(0 if outcome["ok"] else 1)


def perform(screen: Any, outcome: dict[str, Any], *, ask: bool, keep: bool) -> None:
    """Bring everything up, tell the story, and note what happened."""
    from praxis.controlplane import ControlPlane
    from praxis.demo.function_compute.admin import AdminError
    from praxis.demo.processes import ProcessError
    from praxis.demo.stack import Stack
    from praxis.demo.story import Story, Unexpected

    with tempfile.TemporaryDirectory(prefix="praxis-demo-") as temporary:
        screen.chapter("A real control plane on this machine")
        with ControlPlane.start() as plane, Stack.up(plane, directory=Path(temporary), say=screen.item) as stack:
            screen.item("starting the operator, as its own service account")
            stack.start_operator()
            story = Story(stack=stack, screen=screen, ask=ask)
            try:
                story.tell()
            except (Unexpected, TimeoutError, ProcessError, AdminError) as error:
                screen.chapter("This did not go as it should")
                screen.say(str(error))
                for process in stack.started:
                    screen.command(f"the end of {process.name}'s log", process.tail())
            else:
                outcome["ok"] = True
                where_next(screen, stack, keep=keep)
            outcome["incidents"], outcome["refusals"] = story.incidents, story.refusals
            if keep:
                screen.say("Everything is still running. Ctrl-C stops it.")
                signal.pause()


def where_next(screen: Any, stack: Any, *, keep: bool) -> None:
    """What to read and try."""
    screen.chapter("Where to look next")
    screen.item("README.md: the machine, the invariants, what is real and what is not")
    screen.item(
        "operator/praxis/machine.py: the one transition table; operator/praxis/phases/: what each phase decides"
    )
    if not keep:
        screen.item("make demo ARGS=--keep leaves everything running, to look at it with kubectl and praxis")
        return
    screen.item("in another terminal:")
    screen.say(
        f"      export KUBECONFIG={stack.person('alice')}\n      kubectl get incidents -A; kubectl describe incident …"
    )


def interrupted(*_: object) -> None:
    """SIGTERM ends the demo as Ctrl-C does: everything that was started is stopped."""
    raise KeyboardInterrupt
