"""The `praxis` command; installed a second time as `kubectl-praxis`, which kubectl finds as a plugin.

Every subcommand is a module of this package that exports `command`. They load on first use: the operator's
dependencies take seconds to import, and `praxis --help` needs none of them.
"""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "approval": "Verify signed decisions in files, as the operator will.",
    "approve": "Approve the plan of an incident.",
    "audit": "Compare trails with the API server's audit log.",
    "controlplane": "Run a real kube-apiserver and etcd on this machine.",
    "demo": "Show the whole life of an incident on the embedded control plane.",
    "dismiss": "Dismiss an incident: nothing is done, and it is closed.",
    "gateway": "Run the HTTP gateway that turns alerts into Incidents.",
    "operator": "Run the operator.",
    "rbac": "Check what an identity may do, beyond what PRAXIS grants.",
    "reconcile": "Record what a person found on an incident whose outcome is unknown.",
    "records": "Read the operator's flight recorder.",
    "reject": "Reject the plan of an incident.",
    "render": "Render the CRDs, policies, RBAC and diagrams from the code, or check that they are not stale.",
    "revise": "Ask for another plan, with corrections.",
    "scripted-model": "Run the scripted model: an OpenAI-compatible server that reasons by rules.",
    "show": "Show an incident: evidence, diagnosis, plan and trail.",
    "trail": "Export an incident's trail, and verify exported ones offline.",
}
MODULES = {"dismiss": "decide", "approve": "decide", "reject": "decide", "revise": "decide"}


class LazyGroup(click.Group):
    """Names its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"praxis.cli.{MODULES.get(cmd_name, cmd_name).replace('-', '_')}")
        attribute = cmd_name if cmd_name in MODULES else "command"
        command: click.Command = getattr(module, attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="praxis-operator", prog_name="praxis")
def main() -> None:
    """PRAXIS turns alerts into plans, stops for a person, and acts once, verifiably."""
