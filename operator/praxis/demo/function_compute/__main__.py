"""Run the emulator as a process of its own: `python -m praxis.demo.function_compute --help`."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path

import click
from pydantic import ValidationError

from praxis.demo.function_compute.emulator import Emulator
from praxis.demo.function_compute.functions import Seed
from praxis.demo.function_compute.server import EmulatorServer


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Loopback port; 0: a free one."
)
@click.option("--port-file", type=click.Path(path_type=Path), help="Write the port here when it is ready.")
@click.option(
    "--functions",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='JSON: {"functions": [{"name", "instances", …}], "credentials": [{"accessKeyId", "accessKeySecret"}]}.',
)
def main(port: int, port_file: Path | None, functions: Path | None) -> None:
    """Emulate Function Compute 3.0 on this machine until SIGTERM or Ctrl-C."""
    try:
        seed = Seed.model_validate(json.loads(functions.read_text())) if functions else Seed()
    except (ValidationError, ValueError) as error:
        raise click.ClickException(f"{functions}: {error}") from error
    stop = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: stop.set())
    with EmulatorServer(Emulator(seed), port=port) as server:
        click.echo(f"Function Compute emulator at {server.url}")
        if port_file is not None:
            # Renamed into place: whoever waits for the file never reads half a number.
            partial = port_file.with_name(f".{port_file.name}.partial")
            partial.write_text(str(server.port))
            partial.replace(port_file)
        stop.wait()


if __name__ == "__main__":
    main()
