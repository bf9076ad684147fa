"""What the cluster shows of the incident's namespace: events, pods, their logs, workloads and their rollouts.

Times are the API server's, absolute, so that the same facts give the same text and the same digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from praxis.api.base import GROUP
from praxis.evidence.arguments import ListEvents, ListPods, ListWorkloads, PodLogs
from praxis.evidence.contract import Scope
from praxis.evidence.observation import Seen, one_line
from praxis.evidence.reader import ReadOnlyKube

Document = dict[str, Any]

LOG_BYTES: Final = 512 * 1024
"""Most that is read of a log; of a longer tail fewer lines are asked for, so that the newest are kept."""
LOG_READS: Final = 4
"""How often fewer lines are asked for."""
REVISIONS: Final = 3
"""ReplicaSets shown of each Deployment: the newest and the ones it may be rolled back to."""
REVISION: Final = "deployment.kubernetes.io/revision"

KINDS: Final = {
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "ReplicaSet": "replicasets",
}


async def events(kube: ReadOnlyKube, scope: Scope, asked: ListEvents) -> Seen:
    """The most recent events of the namespace, newest first; not PRAXIS' own: a diagnosis would cite itself."""
    query = {"fieldSelector": f"regarding.name={asked.object}"} if asked.object else None
    listing = await kube.list(scope, "events", query)
    others = [each for each in listing.items if not _about_praxis(each)]
    newest = sorted(others, key=lambda each: (_event_time(each), _name(each)), reverse=True)
    return _bounded([_event(each) for each in newest], asked.limit, partial=listing.partial, nothing="no events")


def _about_praxis(event: Document) -> bool:
    return str((event.get("regarding") or {}).get("apiVersion", "")).startswith(f"{GROUP}/")


async def pods(kube: ReadOnlyKube, scope: Scope, asked: ListPods) -> Seen:
    """The pods of the namespace, those that are not well first."""
    listing = await kube.list(scope, "pods", {"labelSelector": asked.selector} if asked.selector else None)
    unwell_first = sorted(listing.items, key=lambda each: (_well(each), -_restarts(each), _name(each)))
    return _bounded([_pod(each) for each in unwell_first], asked.limit, partial=listing.partial, nothing="no pods")


async def logs(kube: ReadOnlyKube, scope: Scope, asked: PodLogs) -> Seen:
    """The last lines of a container's log."""
    query = {"container": asked.container} if asked.container else {}
    query["previous"] = "true" if asked.previous else "false"
    lines, text, more = asked.tail_lines, "", False
    for _ in range(LOG_READS):
        text, more = await kube.log(scope, asked.pod, {**query, "tailLines": str(lines)}, limit=LOG_BYTES)
        if not more or lines == 1:
            break
        lines = max(1, lines // 8)
    if more:
        # Half a line may be half a secret, which nothing would recognise.
        text = text[: text.rfind("\n") + 1] or f"(a line of more than {LOG_BYTES} bytes is not shown)"
    return Seen(text or "the log is empty", partial=more or lines < asked.tail_lines, newest_last=True)


async def workloads(kube: ReadOnlyKube, scope: Scope, asked: ListWorkloads) -> Seen:
    """Deployments, StatefulSets, DaemonSets, and the newest ReplicaSets of each owner."""
    shown: list[str] = []
    partial = False
    for kind, plural in KINDS.items():
        if asked.kind not in (None, kind):
            continue
        listing = await kube.list(scope, plural)
        partial |= listing.partial
        wanted = [each for each in listing.items if asked.name in (None, _name(each), _owner(each))]
        ordered = _newest_revisions(wanted) if kind == "ReplicaSet" else sorted(wanted, key=_name)
        shown += [_workload(kind, each) for each in ordered]
    return _bounded(shown, asked.limit, partial=partial, nothing="no workloads")


def _bounded(lines: Sequence[str], limit: int, *, partial: bool, nothing: str) -> Seen:
    """The first lines, and a last one that says how many are not shown."""
    beyond = len(lines) - limit
    counted = f"({beyond if beyond > 0 else 'some'}{' or more' if partial and beyond > 0 else ''} not shown)"
    left_out = beyond > 0 or partial
    return Seen("\n".join([*lines[:limit], *([counted] if left_out else [])]) or nothing, partial=left_out)


def _event(event: Document) -> str:
    regarding = event.get("regarding") or {}
    count = (event.get("series") or {}).get("count") or event.get("deprecatedCount") or 1
    return (
        f"{_event_time(event)} {event.get('type') or 'Normal'} {event.get('reason') or '-'} "
        f"{regarding.get('kind', '?')}/{regarding.get('name', '?')} x{count}: {one_line(event.get('note') or '')}"
    )


def _event_time(event: Document) -> str:
    """When it was last seen: where that stands depends on who wrote the event."""
    series = event.get("series") or {}
    return str(
        series.get("lastObservedTime")
        or event.get("deprecatedLastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp", "")
    )


def _pod(pod: Document) -> str:
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    statuses = {each["name"]: each for each in _containers(pod)}
    parts = [
        f"{_name(pod)} phase={status.get('phase') or 'Unknown'}",
        *([f"reason={one_line(status['reason'])}"] if status.get("reason") else []),
        f"node={spec.get('nodeName') or 'none'} created={pod['metadata'].get('creationTimestamp', '')}",
        *(["deleting"] if pod["metadata"].get("deletionTimestamp") else []),
        *_conditions(each for each in status.get("conditions") or [] if each.get("status") != "True"),
    ]
    containers = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    return "\n".join([" ".join(parts), *(_container(each, statuses.get(each["name"], {})) for each in containers)])


def _container(container: Document, status: Document) -> str:
    limits = (container.get("resources") or {}).get("limits") or {}
    parts = [f"  container {container['name']} image={container.get('image', '')}"]
    parts.append(f"ready={str(status.get('ready', False)).lower()} restarts={status.get('restartCount', 0)}")
    parts += [f"limit.{name}={limits[name]}" for name in sorted(limits)]
    parts += [
        f"{when}={_state(status[key])}" for key, when in (("state", "now"), ("lastState", "last")) if status.get(key)
    ]
    return " ".join(parts)


def _state(state: Document) -> str:
    """A container's state in a word or two: `OOMKilled(exit 137, finished 2026-…)`."""
    for name, known in sorted(state.items()):
        facts = known or {}
        told = [
            *([f"exit {facts['exitCode']}"] if "exitCode" in facts else []),
            *(f"{key.removesuffix('At')} {facts[key]}" for key in ("startedAt", "finishedAt") if facts.get(key)),
            *([one_line(facts["message"])] if facts.get("message") else []),
        ]
        return f"{facts.get('reason') or name}" + (f"({', '.join(told)})" if told else "")
    return "unknown"


def _workload(kind: str, workload: Document) -> str:
    meta, spec, status = workload["metadata"], workload.get("spec") or {}, workload.get("status") or {}
    if kind == "DaemonSet":
        wanted, ready = status.get("desiredNumberScheduled", 0), status.get("numberReady", 0)
        updated = status.get("updatedNumberScheduled", 0)
    else:
        wanted, ready, updated = spec.get("replicas", 1), status.get("readyReplicas", 0), status.get("updatedReplicas")
    template = ((spec.get("template") or {}).get("spec") or {}).get("containers") or []
    annotations = meta.get("annotations") or {}
    revision = annotations.get(REVISION) or status.get("updateRevision")
    parts = [
        f"{kind}/{_name(workload)} ready={ready}/{wanted}",
        *([f"updated={updated}"] if updated is not None else []),
        f"generation={meta.get('generation', 0)} observed={status.get('observedGeneration', 0)}",
        *([f"revision={revision}"] if revision else []),
        *([f"owner={_owner(workload)}"] if _owner(workload) else []),
        f"created={meta.get('creationTimestamp', '')}",
        "images=" + ",".join(f"{each['name']}={each.get('image', '')}" for each in template),
        *_conditions(status.get("conditions") or []),
    ]
    return " ".join(parts)


def _conditions(conditions: Iterable[Document]) -> list[str]:
    return [_condition(each) for each in sorted(conditions, key=lambda each: str(each.get("type")))]


def _condition(condition: Document) -> str:
    message = f": {one_line(condition['message'])}" if condition.get("message") else ""
    since = f"{condition.get('reason') or '-'} since {condition.get('lastTransitionTime', '?')}"
    return f"{condition.get('type')}={condition.get('status')}({since}{message})"


def _newest_revisions(replicasets: Sequence[Document]) -> list[Document]:
    """Of each owner the newest revisions, newest first."""
    ordered = sorted(replicasets, key=lambda each: (_owner(each), -_revision(each), _name(each)))
    taken: dict[str, int] = {}
    kept = []
    for each in ordered:
        taken[_owner(each)] = taken.get(_owner(each), 0) + 1
        if not _owner(each) or taken[_owner(each)] <= REVISIONS:
            kept.append(each)
    return kept


def _revision(workload: Document) -> int:
    text = str((workload["metadata"].get("annotations") or {}).get(REVISION, ""))
    return int(text) if text.isdecimal() else 0


def _name(document: Document) -> str:
    return str(document["metadata"].get("name", ""))


def _owner(document: Document) -> str:
    return next((str(each.get("name")) for each in document["metadata"].get("ownerReferences") or []), "")


def _containers(pod: Document) -> list[Document]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def _restarts(pod: Document) -> int:
    return sum(each.get("restartCount", 0) for each in _containers(pod))


def _well(pod: Document) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    ready = any(
        each.get("type") == "Ready" and each.get("status") == "True"
        for each in (pod.get("status") or {}).get("conditions") or []
    )
    return phase == "Succeeded" or (phase == "Running" and ready)
