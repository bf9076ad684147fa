"""`praxis operator`: watch Incidents, decide, stop for people, act once."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click
import yaml
from kubernetes_asyncio.config import ConfigException

from praxis.cli.configured import configured
from praxis.cli.logs import configure
from praxis.errors import NeedsPerson
from praxis.settings import OperatorSettings


@click.command(context_settings={"show_default": True})
@click.option("--kubeconfig", type=click.Path(exists=True, path_type=Path), help="Else the pod's service account.")
@click.option("--namespace", "-n", "namespaces", multiple=True, help="Namespace to watch; repeat; none means all.")
@click.option("--http-port", type=click.IntRange(0, 65535), help="Port of /healthz, /readyz, /metrics; 0: a free one.")
@click.option("--port-file", type=click.Path(path_type=Path), help="Write the port there, for --http-port 0.")
@click.option("--log-level", default="INFO", type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]))
def command(
    kubeconfig: Path | None, namespaces: tuple[str, ...], http_port: int | None, port_file: Path | None, log_level: str
) -> None:
    """Run the operator.

    Everything else is configured by environment variables: PRAXIS_MODELS__BASE_URL, PRAXIS_QUORUM__DANGEROUS,
    PRAXIS_ACTIONS__CREDENTIALS_DIR and so on; docs/configuration.md lists them all.
    """
    configure(log_level)
    given = {"kubeconfig": kubeconfig, "namespaces": list(namespaces) or None, "http_port": http_port}
    settings = configured(OperatorSettings, given)
    from praxis.controller.operator import run

    try:
        asyncio.run(run(settings, port_file=port_file))
    except NeedsPerson as error:
        click.echo(f"praxis operator: {error}", err=True)
        sys.exit(1)
    except (ConfigException, yaml.YAMLError) as error:
        # In a pod the service account says how to reach the API server; anywhere else it takes a kubeconfig.
        said = " ".join(str(error).split()).rstrip(".")
        click.echo(
            f"praxis operator: no connection to an API server: {said}; outside a pod give --kubeconfig", err=True
        )
        sys.exit(1)
