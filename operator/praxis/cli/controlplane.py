"""`praxis controlplane`: a real kube-apiserver and etcd on this machine, for trying things by hand."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from praxis.controlplane.access import Access


@click.group(no_args_is_help=True)
def command() -> None:
    """Run a real kube-apiserver and etcd on this machine.

    No containers: the programs are built once, in minutes, with a Go toolchain that is fetched if there is none, or
    taken from the directory that KUBEBUILDER_ASSETS names. Everything listens on loopback only.
    """


def instance(function: Callable[..., None]) -> Callable[..., None]:
    """Options that say which instance is meant, handed over as its `directory`; known failures become one sentence."""

    def wrapper(name: str, state_dir: Path | None, **options: Any) -> None:
        from praxis.controlplane.errors import ControlPlaneError
        from praxis.controlplane.instance import default_directory

        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise click.BadParameter("only letters, digits, dots, dashes and underscores", param_hint="--name")
        try:
            function(directory=state_dir.absolute() if state_dir else default_directory(name), **options)
        except ControlPlaneError as error:
            raise click.ClickException(str(error)) from error

    named = click.option("--name", default="default", show_default=True, help="Each name is a control plane apart.")
    placed = click.option(
        "--state-dir",
        type=click.Path(file_okay=False, path_type=Path),
        help="Where its files are, instead of a directory by --name; made by up, removed by down.",
    )
    return named(placed(update_wrapper(wrapper, function)))


@command.command(short_help="Start a control plane; it runs until `down`.")
@click.option("--timeout", type=click.FloatRange(min=1), default=120, show_default=True, help="Seconds to be ready in.")
@instance
def up(directory: Path, timeout: float) -> None:
    """Start a control plane, which runs until `down`; does nothing when it is running."""
    from praxis.controlplane import instance as instances
    from praxis.controlplane.binaries import resolve

    # So that a build or a start that is stopped by SIGTERM is undone, as with Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    state = instances.read(directory)
    if state is not None and state.owner.alive and not state.starting:
        click.echo("it is already running", err=True)
        describe(directory, instances.access(directory))
        return
    binaries = resolve()
    click.echo("starting etcd and kube-apiserver", err=True)
    describe(directory, instances.up(directory, binaries, timeout=timeout))
    click.echo(f"\n  export KUBECONFIG={instances.access(directory).admin_kubeconfig}", err=True)


@command.command(short_help="Stop a control plane and remove its files.")
@instance
def down(directory: Path) -> None:
    """Stop a control plane and remove its files; does nothing when there is none."""
    from praxis.controlplane import instance as instances

    stopped = instances.down(directory)
    click.echo(f"stopped; {directory} is gone" if stopped else f"no control plane in {directory}")


@command.command(short_help="Say whether it runs and is ready.")
@instance
def status(directory: Path) -> None:
    """Say whether a control plane runs and is ready; the exit code is 0 only then."""
    from praxis.controlplane import instance as instances

    state = instances.read(directory)
    if state is None:
        verdict = "not running"
    elif not state.owner.alive:
        verdict = "gone without having been stopped (a reboot?); `up` starts afresh, `down` removes what is left"
    elif state.starting:
        verdict = "starting"
    else:
        reached = instances.access(directory)
        reason = reached.unreadiness()
        verdict = "ready" if reason is None else f"not ready: {reason}"
        describe(directory, reached)
        for name, process in state.processes.items():
            row(name, f"pid {process.pid}" if process.alive else f"ended; see the log in {directory}")
    row("status", verdict)
    sys.exit(0 if verdict == "ready" else 1)


@command.command(short_help="Print a kubeconfig for any identity.")
@click.option("--user", help="A person: the user name in a client certificate.")
@click.option("--group", "groups", multiple=True, help="A group of that person; repeat for more.")
@click.option("--service-account", metavar="NAMESPACE/NAME", help="A service account that exists: a fresh token.")
@click.option(
    "--lifetime", type=click.IntRange(min=600), default=43200, show_default=True, help="Seconds that a token holds."
)
@instance
def kubeconfig(
    directory: Path, user: str | None, groups: tuple[str, ...], service_account: str | None, lifetime: int
) -> None:
    """Print a kubeconfig for an identity; without options, for the cluster's admin.

    Whoever can read the state directory can be anybody: it holds the certificate authority's key.
    """
    from praxis.controlplane import instance as instances

    if service_account is not None and (user is not None or groups):
        raise click.UsageError("--service-account is an identity of its own: leave --user and --group out.")
    if groups and user is None:
        raise click.UsageError("--group needs --user: groups are those of a person.")
    reached = instances.access(directory)
    if service_account is not None:
        namespace, slash, name = service_account.partition("/")
        if not (namespace and slash and name):
            raise click.BadParameter("give NAMESPACE/NAME", param_hint="--service-account")
        path = reached.service_account_kubeconfig(namespace, name, lifetime=lifetime)
    elif user is not None:
        try:
            path = reached.kubeconfig(user, groups)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
    else:
        path = reached.admin_kubeconfig
    click.echo(path.read_text(), nl=False)


def describe(directory: Path, reached: Access) -> None:
    """Where everything of a running instance is."""
    row("server", reached.server)
    row("kubeconfig", reached.admin_kubeconfig)
    row("audit log", reached.audit_log)
    row("etcd", reached.etcd_endpoint)
    row("files", directory)


def row(name: str, value: object) -> None:
    """One line, aligned with the others."""
    click.echo(f"{name:<15} {value}")
