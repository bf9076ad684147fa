"""What approve, reject, revise, dismiss and reconcile share: a person reads, confirms, and says it in their own name.

The object is created with the user's own credentials, or written out for review in Git; then the operator's verdict is
waited for. The exit code says how it ended.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click
from rich.console import Console

from praxis.api.approval import IncidentApproval, IncidentReconciliation, Verdict, VerdictStatus
from praxis.api.base import API_VERSION, Model, Resource
from praxis.cli.cluster import UserCluster
from praxis.cli.documents import yaml_text
from praxis.cli.terminal import Screen, line
from praxis.errors import AnswerLost, PraxisError, Refused, RetryLater
from praxis.kube import Document

ACCEPTED, REFUSED, USAGE, NO_VERDICT = 0, 1, 2, 3
EXIT_CODES = f"""\b
Exit codes:
  {ACCEPTED}  accepted by the operator, or written with -o
  {REFUSED}  refused: by the operator, the API server, or by what this command found
  {USAGE}  wrong usage
  {NO_VERDICT}  no verdict yet: it stands, and may still be accepted
"""
POLL_SECONDS = 0.5
NAME_LIMIT = 253
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""As Kubernetes generates names: no vowels, nothing that looks like something else."""

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Connection:
    """Which cluster, as whom."""

    kubeconfig: Path | None
    context: str | None
    namespace: str | None

    @contextmanager
    def open(self) -> Iterator[UserCluster]:
        """The cluster; errors in the block become one sentence and an exit code."""
        try:
            with UserCluster.connect(
                kubeconfig=self.kubeconfig, context=self.context, namespace=self.namespace
            ) as cluster:
                yield cluster
        except PraxisError as error:
            fail(str(error))


@dataclass(frozen=True)
class Manner:
    """How to go about it: written out or created, asked or not, and how long to wait for the verdict, seconds."""

    output: str | None
    yes: bool
    timeout: float

    @property
    def screen(self) -> Screen:
        """Where explanations go: with -o, stdout carries the manifest and nothing else."""
        return Screen(sys.stderr if self.output else sys.stdout)


def connection_options(command: Command) -> Command:
    """`-n`, `--kubeconfig` and `--context`, as kubectl has them."""
    options = [
        click.option("-n", "--namespace", help="The incident's namespace; else that of the context."),
        click.option("--kubeconfig", type=click.Path(path_type=Path), help="Else KUBECONFIG, or ~/.kube/config."),
        click.option("--context", help="Context of the kubeconfig; else the current one."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def statement_options(command: Command) -> Command:
    """The options of every command that creates something."""
    options = [
        click.option(
            "-o", "--output", type=click.Choice(["yaml", "json"]), help="Write the manifest to stdout, create nothing."
        ),
        click.option("-y", "--yes", is_flag=True, help="Do not ask; needed where there is no terminal to ask on."),
        click.option(
            "--timeout",
            type=click.FloatRange(min=0),
            default=30.0,
            show_default=True,
            help="How long to wait for the operator's verdict, seconds.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return connection_options(command)


def fail(message: str, code: int = REFUSED) -> NoReturn:
    """End with a sentence on stderr. It may quote a server: nothing in it reaches the terminal as a control."""
    click.echo(f"Error: {line(message)}", err=True)
    sys.exit(code)


def named(incident: str, word: str) -> str:
    """`<incident>-<word>-<random>`, cut to what a name may hold; random, as a decision is never the same as another."""
    suffix = f"-{word}-{''.join(secrets.choice(ALPHABET) for _ in range(6))}"
    return incident[: NAME_LIMIT - len(suffix)].rstrip("-.") + suffix


def manifest(kind: type[Resource], name: str, namespace: str, spec: Model) -> Document:
    """The object as it is created, or reviewed in Git."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec.dump(),
    }


def write(document: Document, output: str) -> None:
    """Print a document; both forms escape what a terminal would obey."""
    if output == "json":
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo(yaml_text(document), nl=False)


def confirmed(question: str, manner: Manner) -> None:
    """Ask on the terminal; without one, only --yes goes on."""
    if manner.yes:
        return
    if not sys.stdin.isatty():
        fail("there is no terminal to ask on: add --yes once you have read the above, or -o yaml to review it", USAGE)
    if not click.confirm(question, err=True):
        fail("nothing was created", REFUSED)


def create(cluster: UserCluster, kind: type[Resource], document: Document) -> None:
    """Create it as the user.

    A lost answer is settled by reading: the name is random, so whatever is found under it is ours.
    """
    name = document["metadata"]["name"]
    try:
        cluster.create(kind, document)
    except Refused as error:
        fail(_told(error, kind, cluster.namespace))
    except AnswerLost as error:
        try:
            cluster.read(kind, name)
        except Refused as absent:
            fail(f"{error}. Nothing was created: {absent}")
        except RetryLater:
            fail(
                f"{error}. Whether {name} was created is not known; look before you repeat it: "
                f"kubectl get {kind.plural} {name} -n {cluster.namespace}",
                NO_VERDICT,
            )


def await_verdict(
    cluster: UserCluster,
    kind: type[IncidentApproval | IncidentReconciliation],
    name: str,
    manner: Manner,
    *,
    still_needed: Callable[[], str | None] = lambda: None,
) -> NoReturn:
    """Wait for the operator's verdict, say it, and exit by it.

    `still_needed` may say why no verdict can come soon, such as that others must approve first; then it is not waited
    for. The verdict itself is read before, so that it is never overlooked.
    """
    deadline = time.monotonic() + manner.timeout
    told = f"the operator gave no verdict within {manner.timeout:g} s; is it running?"
    with Console(stderr=True).status(f"waiting for the operator's verdict on {name}"):
        while True:
            try:
                status = VerdictStatus.model_validate(cluster.read(kind, name).get("status") or {})
                if status.verdict is not None:
                    _say(status, manner)
                waiting = still_needed()
            except RetryLater as error:
                # It is stored; an API server that is away for a moment takes nothing back.
                told, waiting = f"{error}.", None
            except Refused as error:
                told = waiting = f"it was created, and cannot be read: {error}."
            except KeyboardInterrupt:
                told = waiting = "interrupted."
            if waiting is not None or time.monotonic() >= deadline:
                break
            time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))
    manner.screen.paragraph(
        f"No verdict yet: {line(waiting or told)} {name} stands; see it with: "
        f"kubectl get {kind.plural} {name} -n {cluster.namespace} -o yaml",
        style="yellow",
        indent=0,
    )
    sys.exit(NO_VERDICT)


def _say(status: VerdictStatus, manner: Manner) -> NoReturn:
    if status.verdict is Verdict.REFUSED:
        fail(f"refused, {status.reason}: {status.message}")
    manner.screen.paragraph(f"Accepted: {line(status.message or '')}", style="green", indent=0)
    sys.exit(ACCEPTED)


def _told(error: Refused, kind: type[Resource], namespace: str) -> str:
    if error.status == 403 and "cannot create resource" in str(error):
        return (
            f"you may not create {kind.plural} in namespace {namespace}; an admin can bind you to the approver role. "
            f"The API server says: {error}"
        )
    return f"the API server refused it: {error}"
