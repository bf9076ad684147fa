"""The scripted model's answers, by rules over what it was shown. Everything it writes says that it is scripted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from praxis.demo.scripted.reading import Observed, Shown
from praxis.demo.scripted.signals import Finding, instances, nothing_runs, quoted, usable, weighed

SIGN = "[scripted]"
URGENT = re.compile(r"critical|outage|\bdown\b|page", re.IGNORECASE)
CAUSES: Mapping[str, str] = {
    "OutOfMemory": "runs out of memory and is killed",
    "MemoryLeak": "leaks memory: its use grows and is not given back",
    "CrashLoop": "crashes again and again",
    "TrafficSpike": "gets more requests than its instances can serve",
    "Saturation": "is saturated",
    "LatencySpike": "answers slowly",
    "BadDeploy": "misbehaves since a new version was rolled out",
    "ErrorRate": "answers with errors",
    "ConfigurationError": "runs with a wrong or missing setting",
    "DependencyFailure": "cannot reach something that it depends on",
    "Other": "is in a state that no rule recognises",
}
SEVERITIES = {"critical": "critical", "page": "critical", "error": "high", "high": "high", "warning": "medium"}


def said(text: str) -> str:
    """A text, marked as the scripted model's."""
    return f"{SIGN} {text}"


def classification(shown: Shown) -> dict[str, Any]:
    """What kind of incident the alerts describe."""
    finding = weighed(shown, with_evidence=False)
    name, subject = shown.label("alertname"), shown.service or "the service"
    return {
        "category": finding.category,
        "severity": _severity(shown),
        "service": shown.service,
        "summary": said(f"{name or 'An alert'}: {subject} {CAUSES[finding.category]}."),
    }


def diagnosis(shown: Shown) -> dict[str, Any]:
    """What is likely wrong, each claim with the observations that show it."""
    finding = weighed(shown, with_evidence=True)
    claims = [_claim(each, finding) for each in finding.cited[:4]]
    if idle := nothing_runs(shown):
        claims.append({"text": said("The function has no running instance."), "evidence": [idle.id]})
    elif running := instances(shown):
        claims.append({"text": said(f"The function runs: {running[1]}."), "evidence": [running[0].id]})
    failed = [each for each in shown.observations if each.failed]
    if failed and not claims:
        claims.append({"text": said("Some sources could not be read."), "evidence": [each.id for each in failed[:4]]})
    return {"summary": said(_cause(shown, finding)), "claims": claims[:8], "confidence": _confidence(shown, finding)}


def helped_before(shown: Shown, word: str) -> Mapping[str, Any] | None:
    """The nearest memory that tells of this remedy."""
    return next((each for each in shown.memories if word in str(each.get("summary")).lower()), None)


def _claim(observed: Observed, finding: Finding) -> dict[str, Any]:
    return {"text": said(f"{observed.tool} shows: {quoted(observed, finding.category)}"), "evidence": [observed.id]}


def _cause(shown: Shown, finding: Finding) -> str:
    subject = shown.service or "The service"
    cause = f"{subject} {CAUSES[finding.category]}."
    if not list(usable(shown)):
        return f"{cause} This rests on the alerts alone; no source could be read."
    if shown.memories:
        cause += f" It resembles {shown.memories[0].get('incident')} (score {shown.memories[0].get('score')})."
    return cause


def _confidence(shown: Shown, finding: Finding) -> str:
    if finding.category == "Other" or not finding.cited:
        return "low"
    return "high" if len(finding.cited) > 1 or shown.memories else "medium"


def _severity(shown: Shown) -> str:
    labelled = shown.label("severity", "priority").lower()
    if labelled in SEVERITIES:
        return SEVERITIES[labelled]
    return "critical" if URGENT.search(shown.alert_text) else "medium"
