"""`praxis rbac check`: what an identity may do beyond what PRAXIS grants; what the operator asks of itself at start."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from praxis.api.accounts import Names
from praxis.api.powers import Allowed
from praxis.cli.cluster import Impersonated, UserCluster
from praxis.cli.statement import fail
from praxis.cli.terminal import line
from praxis.controller.selfcheck import Finding, Reviews, Subject, examine
from praxis.errors import PraxisError, Refused
from praxis.kube import Document

NOTHING, EXCESS, USAGE, NOT_KNOWN = 0, 1, 2, 3
EXIT_CODES = f"""\b
Exit codes:
  {NOTHING}  it may do nothing beyond what PRAXIS grants
  {EXCESS}  it may do more: a line for each rule to remove; the operator would refuse to start
  {USAGE}  wrong usage
  {NOT_KNOWN}  not known: the API server could not be asked, or nothing was found where not every rule could be listed
"""
SERVICE_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True)
class Asked:
    """Who is checked, how the API server is asked about them, and why that may not show everything."""

    user: str
    reviews: Reviews
    gaps: tuple[str, ...] = ()


@click.group()
def command() -> None:
    """Check what an identity may do, beyond what PRAXIS grants."""


@command.command(epilog=EXIT_CODES)
@click.option("--as", "user", help="Whom to check, by impersonation; else yourself.")
@click.option("--as-group", "groups", multiple=True, help="A group that --as is in; repeat.")
@click.option("-n", "--namespace", "namespaces", multiple=True, help="Namespace to check; repeat; none means all.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Else KUBECONFIG, or ~/.kube/config.")
@click.option("--context", help="Context of the kubeconfig; else the current one.")
@click.option(
    "--installation-namespace",
    envvar="PRAXIS_INSTALLATION_NAMESPACE",
    default=Names.namespace,
    show_default=True,
    help="Where operator and gateway are installed.",
)
@click.option(
    "--operator-account",
    envvar="PRAXIS_OPERATOR_ACCOUNT",
    default=Names.operator_account,
    show_default=True,
    help="The operator's service account.",
)
@click.option(
    "--gateway-account",
    envvar="PRAXIS_GATEWAY_ACCOUNT",
    default=Names.gateway_account,
    show_default=True,
    help="The gateway's service account.",
)
def check(
    *,
    user: str | None,
    groups: tuple[str, ...],
    namespaces: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
    installation_namespace: str,
    operator_account: str,
    gateway_account: str,
) -> None:
    """Print what an identity may do beyond what PRAXIS grants, a line for each rule to remove.

    The gateway's service account is held to the gateway's role, everybody else to the operator's: a person who may
    approve is told so. Whoever may not impersonate can still ask for the known dangers, if they may create
    SubjectAccessReviews; for a service account its own groups are added, as the API server does.
    """
    if groups and user is None:
        raise click.UsageError("--as-group needs --as")
    names = Names(namespace=installation_namespace, operator_account=operator_account, gateway_account=gateway_account)
    try:
        with UserCluster.connect(kubeconfig=kubeconfig, context=context, namespace=None) as cluster:
            asked = _asked(cluster, user, groups)
            where, gaps = _namespaces(cluster, namespaces, names)
            account = gateway_account if asked.user == names.gateway else operator_account
            allowed = Allowed.to(names, account)
            finding = asyncio.run(examine(asked.reviews, allowed=allowed, namespaces=where))
    except PraxisError as error:
        fail(str(error), NOT_KNOWN)
    _say(asked.user, account, len(where), Finding(finding.sentences, (*asked.gaps, *gaps, *finding.gaps)))


def _say(user: str, account: str, namespaces: int, finding: Finding) -> None:
    for sentence in finding.sentences:
        click.echo(f"{line(user)} {line(sentence)}")
    for gap in finding.gaps:
        click.echo(f"not every rule was seen: {line(gap)}", err=True)
    if finding.sentences:
        sys.exit(EXCESS)
    if finding.gaps:
        click.echo(f"{line(user)}: no known danger was found, which does not say that there is none", err=True)
        sys.exit(NOT_KNOWN)
    click.echo(f"{line(user)} may write nothing beyond the role of {account}; namespaces checked: {namespaces}")


def _asked(cluster: UserCluster, user: str | None, groups: tuple[str, ...]) -> Asked:
    """By impersonation when that is allowed, which lists every rule; else by asking about them."""
    if user is None:
        return Asked(cluster.whoami().username, _reviews(cluster))
    somebody = Impersonated(user, groups)
    try:
        cluster.whoami(impersonated=somebody)
    except Refused as error:
        if error.status != 403:
            raise
        subject = Subject(user, _groups(user, groups))
        return Asked(user, _reviews(cluster, subject=subject), (f"you may not impersonate: {error}",))
    return Asked(user, _reviews(cluster, impersonated=somebody))


def _reviews(
    cluster: UserCluster, *, subject: Subject | None = None, impersonated: Impersonated | None = None
) -> Reviews:
    async def ask(path: str, document: Document) -> Document:
        return await asyncio.to_thread(cluster.review, path, document, impersonated=impersonated)

    return Reviews(ask, subject=subject)


def _groups(user: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """As impersonation fills them in: those of a service account when none are given, and everybody's."""
    if not groups and user.startswith(SERVICE_ACCOUNT):
        namespace = user.removeprefix(SERVICE_ACCOUNT).partition(":")[0]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return (*groups, "system:authenticated")


def _namespaces(cluster: UserCluster, given: Sequence[str], names: Names) -> tuple[list[str], tuple[str, ...]]:
    """Those that were given, else all; where they may not be listed, the context's and the installation's."""
    if given:
        return sorted(set(given)), ()
    try:
        return sorted({*cluster.namespaces(), names.namespace}), ()
    except Refused as error:
        return sorted({cluster.namespace, names.namespace}), (f"namespaces cannot be listed, name them: {error}",)
