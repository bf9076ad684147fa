"""The function's status as evidence: what the service says of it, with the names of its environment but no value."""

from __future__ import annotations

from typing import Any

from praxis.actions.function_compute.credentials import read_credentials
from praxis.actions.function_compute.service import Service
from praxis.api.target import RemediationTarget
from praxis.settings import ActionSettings

SHOWN = ("functionName", "state", "stateReason", "lastUpdateStatus", "lastUpdateStatusReason", "lastModifiedTime")


class FunctionStatus:
    """Reads a declared function with its own credentials; synchronous, as the SDK is."""

    def __init__(self, settings: ActionSettings) -> None:
        self._settings = settings

    def describe(self, target: RemediationTarget) -> dict[str, Any]:
        """State, last update and active instances. Raises RetryLater, NeedsPerson, DefinitelyNotApplied."""
        with Service(
            function=target.spec.function_compute,
            credentials=read_credentials(self._settings, target),
            request_seconds=self._settings.request_timeout,
        ) as service:
            function = service.get_function()
            listing = service.list_instances()
        return {
            **{name: function.document[name] for name in SHOWN if function.document.get(name)},
            "environmentNames": sorted(function.environment),
            "instances": [each.dump() for each in listing.instances],
            "allInstancesListed": listing.complete,
        }
