"""`praxis gateway`: take notifications from alert senders and turn them into Incidents."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from praxis.cli.configured import configured
from praxis.cli.logs import configure
from praxis.errors import NeedsPerson
from praxis.settings import GatewaySettings

Command = TypeVar("Command", bound=Callable[..., Any])


def setting(name: str, kind: Any, *flags: str) -> Callable[[Command], Command]:
    """An option for a setting: its own words in --help, its environment variable, its default."""
    field = GatewaySettings.model_fields[name]
    default = "none" if field.default is None else field.default
    text = f"{field.description}  [env: PRAXIS_GATEWAY_{name.upper()}; default: {default}]"
    return click.option(f"--{name.replace('_', '-')}", *flags, name, type=kind, default=None, help=text)


FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("gateway")
@setting("bearer_token_file", FILE)
@setting("webhook_secret_file", FILE)
@setting("namespace", str, "-n")
@setting("kubeconfig", click.Path(exists=True, dir_okay=False, path_type=Path))
@setting("receiver", str)
@setting("webhook_receiver", str)
@setting("host", str)
@setting("port", click.IntRange(0, 65535))
@setting("concurrency", int)
@setting("body_limit", int)
@setting("read_timeout", float)
@setting("replay_window", float)
@click.option("--port-file", type=FILE, help="Written once it listens, with the port it took; for --port 0.")
@click.option(
    "--log-level", default="INFO", show_default=True, type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"])
)
def command(port_file: Path | None, log_level: str, **given: Any) -> None:
    """Take notifications from alert senders and turn each group's episode into one Incident.

    POST /v1/alertmanager takes Alertmanager's webhook with a bearer token, POST /v1/alerts the same payload with a
    Standard Webhooks signature; each needs its secret in a file, one of them at least. /healthz, /readyz and /metrics
    are on the same port. Options go before environment variables.
    """
    configure(log_level)
    settings = configured(GatewaySettings, given)
    from praxis.intake.gateway import run

    try:
        asyncio.run(run(settings, port_file=port_file))
    except NeedsPerson as error:
        click.echo(f"praxis gateway: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        raise click.ClickException(f"cannot listen on {settings.host}:{settings.port}: {error}") from error
