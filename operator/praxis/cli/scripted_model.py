"""`praxis scripted-model`: serve the scripted model until told to stop."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click

from praxis.demo.scripted_model import EMBEDDING, FAST, REASONING, ScriptedModel


@click.command("scripted-model")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0 takes a free port.")
@click.option(
    "--port-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Written once it listens, with the port it took.",
)
def command(port: int, port_file: Path | None) -> None:
    """Serve the scripted model on 127.0.0.1.

    It speaks chat completions, embeddings and models under /v1, and misbehaves when POST /admin/faults says so. It is a
    stand-in that reasons by rules, not a language model.
    """
    try:
        asyncio.run(_serve(port, port_file))
    except OSError as error:
        raise click.ClickException(f"cannot listen on 127.0.0.1:{port}: {error}") from error


async def _serve(port: int, port_file: Path | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with ScriptedModel(port=port) as server:
        if port_file is not None:
            _write(port_file, f"{server.port}\n")
        click.echo(f"The scripted model ({FAST}, {REASONING}, {EMBEDDING}) listens on {server.url}", err=True)
        await stop.wait()


def _write(path: Path, text: str) -> None:
    # Renamed into place: whoever waits for the file never reads half a port.
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)
