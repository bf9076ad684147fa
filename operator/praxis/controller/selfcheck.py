"""What an identity may do, asked of the API server: the operator of itself before it starts, a person of anybody.

A SelfSubjectRulesReview lists the rules of one namespace, those of cluster roles included. An authoriser that cannot
list its rules (a webhook, as managed clusters have) makes the list `incomplete`: then each known danger is asked for.
Cluster-wide each is asked for in any case, as a list may hold what another authoriser adds to it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from praxis.api.accounts import Names
from praxis.api.powers import QUESTIONS, Allowed, Excess, Power, Rule, excesses
from praxis.errors import NeedsPerson, Refused
from praxis.kube import Kube, resource_path
from praxis.settings import OperatorSettings
from praxis.signing import openssh

log = logging.getLogger(__name__)

Document = dict[str, Any]
Ask = Callable[[str, Document], Awaitable[Document]]
"""Create a review at a path; answers with the review, its status filled in."""
API = "authorization.k8s.io/v1"
CONCURRENT_QUESTIONS = 8
"""Reviews under way at once: an operator that starts is no load for the API server."""
SHOWN_NAMESPACES = 4
"""Namespaces that one sentence names."""
EVERYWHERE = ""


@dataclass(frozen=True)
class Subject:
    """Whom a SubjectAccessReview speaks of; its groups are taken as they are."""

    user: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Listed:
    """The rules that were listed for a namespace; `gap` says what may be missing, None when nothing is."""

    rules: tuple[Rule, ...]
    gap: str | None = None


@dataclass(frozen=True)
class Finding:
    """What an identity may do too much, a sentence for each rule, and where the API server could not list all rules."""

    sentences: tuple[str, ...]
    gaps: tuple[str, ...]


class Reviews:
    """Access reviews, of the one who asks or of somebody else; at most a few at once."""

    def __init__(self, ask: Ask, *, subject: Subject | None = None) -> None:
        self._ask = ask
        self._subject = subject
        self._turn = asyncio.Semaphore(CONCURRENT_QUESTIONS)

    async def rules(self, namespace: str) -> Listed:
        """Every rule that counts in a namespace. Of somebody else none can be listed. Raises as `may`."""
        if self._subject is not None:
            return Listed((), "the rules of somebody else cannot be listed without impersonating them")
        status = await self._review("SelfSubjectRulesReview", {"namespace": namespace})
        listed = [*(status.get("resourceRules") or ()), *(status.get("nonResourceRules") or ())]
        error = status.get("evaluationError") or ""
        gap = error or "an authoriser does not list its rules" if status.get("incomplete") or error else None
        return Listed(tuple(Rule.parse(rule) for rule in listed), gap)

    async def may(self, power: Power, namespace: str) -> str | None:
        """Who allows a power, in the API server's words, perhaps empty; None when it is not allowed.

        Raises:
            Refused: the API server does not let this be asked.
            RetryLater: it could not be asked.
        """
        attributes = power.attributes
        spec: Document = {"nonResourceAttributes": attributes}
        if not power.url:
            spec = {"resourceAttributes": {**attributes, **({"namespace": namespace} if namespace else {})}}
        kind = "SelfSubjectAccessReview"
        if self._subject is not None:
            kind = "SubjectAccessReview"
            spec |= {"user": self._subject.user, "groups": list(self._subject.groups)}
        status = await self._review(kind, spec)
        return str(status.get("reason") or "") if status.get("allowed") else None

    async def _review(self, kind: str, spec: Document) -> Document:
        async with self._turn:
            answer = await self._ask(f"/apis/{API}/{kind.lower()}s", {"apiVersion": API, "kind": kind, "spec": spec})
        status: Document = answer.get("status") or {}
        return status


async def examine(reviews: Reviews, *, allowed: Allowed, namespaces: Sequence[str]) -> Finding:
    """What an identity may do beyond `allowed` in these namespaces and cluster-wide. Raises as `Reviews.may`."""
    listed = dict(zip(namespaces, await asyncio.gather(*map(reviews.rules, namespaces)), strict=True))
    found: dict[Excess, list[str]] = {}
    for namespace, each in listed.items():
        for excess in excesses(each.rules, allowed.at(namespace)):
            found.setdefault(excess, []).append(namespace)
    incomplete = [namespace for namespace, each in listed.items() if each.gap is not None]
    for namespace in (EVERYWHERE, *incomplete):
        for power in await _held(reviews, namespace):
            if not _known(power, namespace, found):
                found.setdefault(Excess((power,)), []).append(namespace)
    sentences = [await _sentence(reviews, excess, where) for excess, where in found.items()]
    return Finding(tuple(sentences), tuple(f"namespace {each}: {listed[each].gap}" for each in incomplete))


async def own_powers(kube: Kube, settings: OperatorSettings) -> None:
    """Make sure that the operator may do what PRAXIS grants it, and nothing that could go round its guards.

    Raises:
        NeedsPerson: it may do more, with a sentence for each rule to remove; or it may not find out; or it is to take
            signed decisions, and has no OpenSSH to verify them.
        RetryLater: the API server could not be asked.
    """

    async def ask(path: str, review: Document) -> Document:
        return (await kube.create(path, review)).document

    if settings.signing_accounts:
        openssh.program()
    names = Names(namespace=settings.installation_namespace, operator_account=settings.operator_account)
    try:
        namespaces = await _namespaces(kube, settings)
        finding = await examine(
            Reviews(ask), allowed=Allowed.to(names, settings.operator_account), namespaces=namespaces
        )
    except Refused as error:
        raise NeedsPerson(f"the operator cannot find out what it may do; apply manifests/: {error}") from error
    if finding.sentences:
        raise NeedsPerson(refusal(finding.sentences))
    if finding.gaps:
        log.warning("not every rule could be listed; each known danger was asked for", extra={"gaps": finding.gaps[:8]})


def refusal(sentences: Iterable[str]) -> str:
    """Why the operator does not start: one line for each rule to remove."""
    return "the operator refuses to start, as it may do more than it needs:" + "".join(
        f"\n- it {each}" for each in sentences
    )


async def _namespaces(kube: Kube, settings: OperatorSettings) -> list[str]:
    """Those that are watched, and the installation's own, in which there is a role more."""
    watched = settings.namespaces or [
        each["name"] for each in await kube.metadata(resource_path("/api/v1", "namespaces", None))
    ]
    return sorted({*watched, settings.installation_namespace})


async def _held(reviews: Reviews, namespace: str) -> list[Power]:
    answers = await asyncio.gather(*(reviews.may(power, namespace) for power in QUESTIONS))
    return [power for power, origin in zip(QUESTIONS, answers, strict=True) if origin is not None]


def _known(power: Power, namespace: str, found: dict[Excess, list[str]]) -> bool:
    """Whether a rule that was found already gives this power there; one that holds everywhere counts everywhere."""
    return any(
        (namespace in where or EVERYWHERE in where or namespace == EVERYWHERE)
        and (excess.rule.grants(power) if excess.rule else power in excess.powers)
        for excess, where in found.items()
    )


async def _sentence(reviews: Reviews, excess: Excess, where: Sequence[str]) -> str:
    """The sentence, with the binding that grants it by the API server's word: what is granted cluster-wide first."""
    power = excess.powers[0]
    origin = await reviews.may(power, EVERYWHERE)
    if origin is not None:
        return excess.sentence("at a URL" if power.url else "in every namespace", origin)
    origin = await reviews.may(power, where[0])
    more = f" and {len(where) - SHOWN_NAMESPACES} more" if len(where) > SHOWN_NAMESPACES else ""
    return excess.sentence(f"in {', '.join(where[:SHOWN_NAMESPACES])}{more}", origin or "")
