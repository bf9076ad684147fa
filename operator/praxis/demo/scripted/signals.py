"""What texts speak of: each signal is a kind of incident, found by words, weighed by where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from praxis.demo.scripted.reading import Observed, Shown

ALERT_WEIGHT = 3
EVIDENCE_WEIGHT = 4
"""An alert names the symptom; what was seen outweighs it."""
MOST_HITS = 2
"""A log that repeats one line a hundred times says it no louder than twice."""


def _any(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


SIGNALS: Mapping[str, re.Pattern[str]] = {
    "OutOfMemory": _any(r"oom[ -]?kill", r"out[ -]of[ -]memory", r"exit (?:code:? )?137", r"memory limit exceeded"),
    "MemoryLeak": _any(
        r"memory[ _-]?(?:leak|grow|usage|high|pressure|rises)", r"heap", r"\bleak", r"resident_?memory", r"highmemory"
    ),
    "CrashLoop": _any(r"crash[ -]?loop", r"back-?off restarting", r"\bpanic\b", r"segfault", r"keeps crashing"),
    "TrafficSpike": _any(
        r"traffic", r"requests? per second", r"\brps\b", r"\bqps\b", r"flash sale", r"burst", r"concurrency"
    ),
    "Saturation": _any(r"saturat", r"cpu[ _-]?(?:high|usage|throttl)", r"highcpu", r"queue (?:is )?full", r"throttl"),
    "LatencySpike": _any(r"latenc", r"\bslow", r"\bp9[59]\b", r"timed? ?out", r"deadline exceeded", r"response time"),
    "BadDeploy": _any(
        r"deploy(?:ed|ment of)?\b.{0,40}\b(?:v?\d|version|new|bad|fail)",
        r"baddeploy",
        r"rollout",
        r"new (?:version|release|image)",
        r"since (?:the )?(?:deploy|release)",
        r"regression",
    ),
    "ErrorRate": _any(
        r"error[ _-]?(?:rate|ratio|budget)", r"\b5xx\b", r"\bHTTP 5\d\d\b", r"status[= ]5\d\d", r"high ?errors"
    ),
    "ConfigurationError": _any(
        r"config(?:uration)?[ _-]?(?:error|invalid|missing|drift)",
        r"misconfig",
        r"invalid (?:value|setting)",
        r"(?:env(?:ironment)?|setting)\b.{0,24}\b(?:missing|unset|not set|invalid)",
    ),
    "DependencyFailure": _any(r"connection refused", r"upstream", r"dependency", r"no such host", r"name resolution"),
}
ROOTS = ("OutOfMemory", "MemoryLeak", "CrashLoop", "BadDeploy", "ConfigurationError")
"""Causes rather than symptoms: at equal weight they win."""
NOTHING_RUNNING = re.compile(
    r"nothing (?:is )?running|no (?:active |running )?instances|\b0 (?:active |running )?instances"
    r"|(?:active|running)?_?instances\"?: ?(?:0\b|\[\])|instances=0\b",
    re.IGNORECASE,
)
OBJECT = re.compile(r"\b(?:Deployment|StatefulSet|DaemonSet|ReplicaSet|Job|Pod)/(?P<name>[a-z0-9.-]+)")
INSTANCES = re.compile(
    r"(?P<before>\d{1,2}) (?:active |running )?(?:instances|replicas|pods)|active instances: (?P<after>\d{1,2})",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Finding:
    """The most likely kind of incident and where it was seen."""

    category: str
    score: int
    cited: tuple[Observed, ...]


def weighed(shown: Shown, *, with_evidence: bool) -> Finding:
    """What the alerts, and with them the evidence, speak of most."""
    scores = dict.fromkeys(SIGNALS, 0)
    for category in SIGNALS:
        scores[category] += ALERT_WEIGHT * _hits(category, shown.alert_text)
        if with_evidence:
            scores[category] += EVIDENCE_WEIGHT * sum(_hits(category, about(shown, each)) for each in usable(shown))
    order = [*ROOTS, *(each for each in SIGNALS if each not in ROOTS)]
    best = max(order, key=lambda each: scores[each])
    if scores[best] == 0:
        return Finding("Other", 0, ())
    cited = tuple(each for each in usable(shown) if _hits(best, about(shown, each))) if with_evidence else ()
    return Finding(best, scores[best], cited)


def usable(shown: Shown) -> Iterable[Observed]:
    """The observations whose source could be read."""
    return [each for each in shown.observations if not each.failed]


def about(shown: Shown, observed: Observed) -> str:
    """What an observation says that is not of another service's object, as the Events of a namespace are."""
    service = shown.service
    lines = observed.excerpt.splitlines()
    return "\n".join(each for each in lines if not (found := OBJECT.search(each)) or service in found["name"])


def nothing_runs(shown: Shown) -> Observed | None:
    """The observation of a function that shows no running instance, if there is one."""
    functions = [each for each in usable(shown) if "function" in each.tool]
    return next((each for each in functions if NOTHING_RUNNING.search(each.excerpt)), None)


def instances(shown: Shown) -> tuple[Observed, str] | None:
    """The observation that shows how many instances a function has, and those words."""
    functions = [each for each in usable(shown) if "function" in each.tool]
    return next(((each, found[0]) for each in functions if (found := INSTANCES.search(each.excerpt))), None)


def quoted(observed: Observed, category: str) -> str:
    """The line of an observation that shows the signal."""
    lines = [line.strip() for line in observed.excerpt.splitlines() if SIGNALS[category].search(line)]
    return lines[0][:160] if lines else observed.excerpt.strip()[:160]


def _hits(category: str, text: str) -> int:
    return min(len(SIGNALS[category].findall(text)), MOST_HITS)
