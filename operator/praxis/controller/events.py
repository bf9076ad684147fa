"""Kubernetes Events: what `kubectl describe` tells. Best effort, named by content, so that saying it twice is once."""

from __future__ import annotations

import logging

from praxis.api.base import API_VERSION, Resource
from praxis.api.reasons import Reason
from praxis.clock import Clock, rfc3339
from praxis.digest import PREFIX, digest
from praxis.errors import PraxisError, Refused
from praxis.kube import Kube, resource_path
from praxis.redaction import fit

log = logging.getLogger(__name__)

MESSAGE_LIMIT = 1024
WARNINGS = frozenset(
    {
        Reason.ATTEMPTS_EXHAUSTED,
        Reason.PLANS_EXHAUSTED,
        Reason.NO_TARGET,
        Reason.PLAN_DRIFTED,
        Reason.POLICIES_CHANGED,
        Reason.TARGET_HELD,
        Reason.TARGET_NOT_DISPOSABLE,
        Reason.TARGET_SHARED,
        Reason.NEVER_SENT,
        Reason.BASELINE_CHANGED,
        Reason.NOTHING_RUNNING,
        Reason.REJECTED_BY_SERVICE,
        Reason.NOT_PROVEN,
        Reason.WRITER_LOST,
        Reason.NOT_APPLIED,
        Reason.OUTCOME_UNKNOWN,
        Reason.NOT_EFFECTIVE,
        Reason.UNAVAILABLE,
        Reason.ACTION_REQUIRED,
        Reason.INSTALLATION_DIFFERS,
        Reason.INVALID_ANSWER,
        Reason.BUDGET_SPENT,
        Reason.DEADLINE_PASSED,
        Reason.WRITE_REFUSED,
        Reason.STATUS_TOO_LARGE,
        Reason.UNEXPECTED_ERROR,
        Reason.APPROVAL_EXPIRED,
    }
)


class EventRecorder:
    """Says what happened to an object, on that object."""

    def __init__(self, *, kube: Kube, clock: Clock, instance: str) -> None:
        self._kube = kube
        self._clock = clock
        self._instance = instance

    async def record(self, about: Resource, reason: str, message: str, *, once_per: str, action: str) -> None:
        """Create an Event. `once_per` is what makes it another one: a trail head, a time of transition.

        Never raises for the API server: an Event that could not be written stops nothing.
        """
        metadata = about.metadata
        identity = digest([metadata.uid, once_per, reason, message]).removeprefix(PREFIX)[:16]
        now = rfc3339(self._clock.now())
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            # Cut where a name may end: each part between dots begins and ends with a letter or digit.
            "metadata": {"name": f"{metadata.name[:200].rstrip('-.')}.{identity}", "namespace": metadata.namespace},
            "eventTime": now,
            "reportingController": "praxis.kopachelli.dev/operator",
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "type": "Warning" if reason in WARNINGS or action == "Refused" else "Normal",
            "note": fit(message, MESSAGE_LIMIT) or reason,
            "regarding": {
                "apiVersion": API_VERSION,
                "kind": about.kind,
                "namespace": metadata.namespace,
                "name": metadata.name,
                "uid": metadata.uid,
            },
        }
        try:
            await self._kube.create(resource_path("/apis/events.k8s.io/v1", "events", metadata.namespace), event)
        except Refused as error:
            if not error.conflict:
                log.warning("event refused", extra={"incident": about.key, "reason": reason, "error": str(error)})
        except PraxisError as error:
            log.warning("event not written", extra={"incident": about.key, "reason": reason, "error": str(error)})
