"""The scripted model's plans: a remedy for each kind of incident, less what evidence or people forbid."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from praxis.demo.scripted.reading import Shown
from praxis.demo.scripted.rules import CAUSES, helped_before, said
from praxis.demo.scripted.signals import INSTANCES, Finding, nothing_runs, usable, weighed

RESTART, CONFIG, SCALE, ROLLBACK = "restart_function", "update_config", "scale_service", "rollback_deploy"
TIERS = {RESTART: "safe", CONFIG: "caution", SCALE: "caution", ROLLBACK: "dangerous"}
WORDS = {RESTART: r"restart\w*", CONFIG: r"config\w*", SCALE: r"scal\w*", ROLLBACK: r"roll(?:ing)?[ -]?back\w*"}
NEGATED = r"\b(?:no|not|don'?t|never|without|avoid|drop|remove|skip|instead of|rather than)\b(?:[ '-]+\w+){0,3}?[ '-]+"
REMEDIES: Mapping[str, tuple[str, ...]] = {
    "OutOfMemory": (RESTART, SCALE),
    "MemoryLeak": (RESTART,),
    "CrashLoop": (RESTART,),
    "TrafficSpike": (SCALE,),
    "Saturation": (SCALE,),
    "LatencySpike": (SCALE,),
    "BadDeploy": (ROLLBACK,),
    "ErrorRate": (ROLLBACK, CONFIG),
    "ConfigurationError": (CONFIG,),
    "DependencyFailure": (CONFIG,),
    "Other": (CONFIG,),
}
LAST_RESORTS = (CONFIG, SCALE, ROLLBACK)
SETTING = re.compile(
    r"\b(?P<key>[A-Z][A-Z0-9_]{2,40})\b(?:\s*(?:=|must be|should be|expected)\s*\"?(?P<value>[\w./:-]{1,60}))?"
)
NOT_SETTINGS = frozenset(
    {"ERROR", "WARN", "INFO", "DEBUG", "FATAL", "HTTP", "GET", "POST", "PUT", "OOM", "CPU", "REDACTED"}
)
PREVIOUS = re.compile(
    r"(?:from|previous(?: version| revision)?|last good|was)\W{1,3}(?P<version>v?\d[\w.]{0,20})", re.IGNORECASE
)
TO_COUNT = re.compile(r"scal\w*\W+(?:\w+\W+){0,3}?to\W+(?P<count>\d{1,2})\b", re.IGNORECASE)


@dataclass(frozen=True)
class Wishes:
    """What the reviewers' corrections ask for, by action type."""

    vetoed: frozenset[str]
    wanted: tuple[str, ...]


def plan(shown: Shown) -> dict[str, Any]:
    """A plan on the given targets."""
    finding = weighed(shown, with_evidence=True)
    types, why_not = _types(shown, finding)
    actions = [_action(each, shown) for each in types]
    return {
        "summary": said(f"{'; '.join(_clause(each, shown) for each in actions)}."),
        "rationale": said(_rationale(shown, finding, why_not)),
        "actions": actions,
    }


def wishes(corrections: list[str]) -> Wishes:
    """Read corrections: a negated remedy is vetoed, another one that is named is wanted."""
    text = " . ".join(corrections)
    vetoed = {each for each, word in WORDS.items() if re.search(NEGATED + word, text, re.IGNORECASE)}
    wanted = [
        each for each, word in WORDS.items() if each not in vetoed and re.search(rf"\b{word}", text, re.IGNORECASE)
    ]
    return Wishes(frozenset(vetoed), tuple(wanted))


def _types(shown: Shown, finding: Finding) -> tuple[list[str], list[str]]:
    """The action types of the plan, and why the obvious ones are not among them."""
    wish = wishes(shown.corrections)
    proposed = list(wish.wanted or REMEDIES[finding.category])
    why_not = [f"{each} is left out, as the reviewers asked" for each in proposed if each in wish.vetoed]
    proposed = [each for each in proposed if each not in wish.vetoed]
    if RESTART in proposed and (obstacle := _no_restart(shown)):
        proposed.remove(RESTART)
        why_not.append(f"no restart: {obstacle}")
    if not proposed:
        proposed = [next((each for each in LAST_RESORTS if each not in wish.vetoed), CONFIG)]
    return proposed, why_not


def _no_restart(shown: Shown) -> str | None:
    if not any(each.get("disposable") for each in shown.targets):
        return "no target is disposable"
    if idle := nothing_runs(shown):
        return f"the function has no running instance ({idle.id})"
    tried = [each.get("type") for each in shown.earlier.get("actions") or []]
    if RESTART in tried and shown.earlier.get("endedBecause") == "NotEffective":
        return "the earlier one did not end the alert"
    return None


def _action(type_: str, shown: Shown) -> dict[str, Any]:
    builders: Mapping[str, Callable[[Shown], tuple[dict[str, str], str]]] = {
        RESTART: _restart,
        CONFIG: _config,
        SCALE: _scale,
        ROLLBACK: _rollback,
    }
    parameters, rollback = builders[type_](shown)
    disposable = [each for each in shown.targets if each.get("disposable") or type_ != RESTART]
    return {
        "id": type_.replace("_", "-"),
        "type": type_,
        "tier": TIERS[type_],
        "target": str((disposable or shown.targets)[0].get("name")),
        "parameters": parameters,
        "rollback": said(rollback),
    }


def _restart(shown: Shown) -> tuple[dict[str, str], str]:
    del shown
    return (
        {},
        "Nothing to undo: code and settings stay; the marker PRAXIS_RESTART_ID may be removed from the environment.",
    )


def _config(shown: Shown) -> tuple[dict[str, str], str]:
    for text in [each.excerpt for each in usable(shown)] + [shown.alert_text]:
        for found in SETTING.finditer(text):
            if found["value"] and found["key"] not in NOT_SETTINGS:
                return _change(found["key"], found["value"])
    return _change("LOG_LEVEL", "debug")


def _change(key: str, value: str) -> tuple[dict[str, str], str]:
    return {"key": key, "value": value}, f"Set {key} back to the value it had."


def _scale(shown: Shown) -> tuple[dict[str, str], str]:
    asked = TO_COUNT.search(" ".join(shown.corrections))
    counts = [
        int(found["before"] or found["after"]) for each in usable(shown) for found in INSTANCES.finditer(each.excerpt)
    ]
    now = max(counts, default=2)
    replicas = asked["count"] if asked else str(min(max(now * 2, 2), 100))
    return {"replicas": replicas}, f"Return to {now} instances."


def _rollback(shown: Shown) -> tuple[dict[str, str], str]:
    texts = [each.excerpt for each in usable(shown)] + [shown.alert_text]
    version = next((found["version"].rstrip(".") for text in texts if (found := PREVIOUS.search(text))), "previous")
    return {"revision": version}, "Roll forward to the version that runs now."


def _clause(action: Mapping[str, Any], shown: Shown) -> str:
    del shown
    given = action["parameters"]
    texts = {
        RESTART: "Restart {target}",
        CONFIG: "Dry run: set {key} of {target} to {value}",
        SCALE: "Dry run: keep {replicas} instances of {target}",
        ROLLBACK: "Dry run: return {target} to version {revision}",
    }
    return texts[action["type"]].format(target=action["target"], **given)


def _rationale(shown: Shown, finding: Finding, why_not: list[str]) -> str:
    cited = ", ".join(each.id for each in finding.cited) or "the alerts alone"
    parts = [f"{shown.service or 'The service'} {CAUSES[finding.category]} ({cited})."]
    if memory := helped_before(shown, "restart") or next(iter(shown.memories), None):
        parts.append(f"Memory of {memory.get('incident')} (score {memory.get('score')}): {memory.get('summary')}")
    if shown.earlier:
        parts.append(f"Plan {shown.earlier.get('revision')} ended with {shown.earlier.get('endedBecause')}.")
    if shown.corrections:
        parts.append(f"Reviewers asked: {'; '.join(shown.corrections)}.")
    parts += [f"{each[0].upper()}{each[1:]}." for each in why_not]
    return " ".join(parts)[:3500]
