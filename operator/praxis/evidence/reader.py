"""Kubernetes as evidence may see it: GET, the incident's own namespace, and a short list of resources.

RBAC says the same to the API server; this says it to ourselves, so that neither a generous role nor a name that the
model made up widens what is read. Secrets are not on the list, nor is anything that carries their values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from praxis.errors import Refused
from praxis.evidence.contract import Scope
from praxis.kube import Kube, resource_path

READABLE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pods": "/api/v1",
        "events": "/apis/events.k8s.io/v1",
        "deployments": "/apis/apps/v1",
        "statefulsets": "/apis/apps/v1",
        "replicasets": "/apis/apps/v1",
        "daemonsets": "/apis/apps/v1",
    }
)
"""Plural of each resource that may be read, and the API that serves it."""
PAGE: Final = 200
"""Objects asked for at once: bounds what one answer holds in memory."""
PAGES: Final = 10
"""Pages read of one list; what lies beyond is not seen, and the observation says so."""


@dataclass(frozen=True)
class Listing:
    """Objects of one resource; `partial` when there were more than PAGE times PAGES."""

    items: tuple[dict[str, Any], ...]
    partial: bool


class ReadOnlyKube:
    """The only way from evidence to the API server. The namespace is the scope's: none can be passed in."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def list(self, scope: Scope, resource: str, query: Mapping[str, str] | None = None) -> Listing:
        """The objects of a resource in the incident's namespace.

        Raises:
            Refused: the resource is not readable evidence, or the API server says no.
            RetryLater: the API server could not be asked.
        """
        path = _path(scope, resource)
        items: list[dict[str, Any]] = []
        following = ""
        for _ in range(PAGES):
            page = {**(query or {}), "limit": str(PAGE), **({"continue": following} if following else {})}
            document = (await self._kube.get(path, page)).document
            items += document.get("items") or []
            following = (document.get("metadata") or {}).get("continue") or ""
            if not following:
                break
        return Listing(tuple(items), partial=bool(following))

    async def log(self, scope: Scope, pod: str, query: Mapping[str, str], *, limit: int) -> tuple[str, bool]:
        """The log of a pod, at most `limit` bytes from its beginning; also whether there was more. Raises as `list`."""
        return await self._kube.text(_path(scope, "pods", pod, "log"), query, limit=limit)


def _path(scope: Scope, resource: str, name: str | None = None, subresource: str | None = None) -> str:
    if resource not in READABLE:
        raise Refused(f"{resource} are not read as evidence", status=403)
    if not scope.namespace:
        raise Refused("the incident has no namespace, so nothing is in its scope", status=403)
    return resource_path(READABLE[resource], resource, scope.namespace, name, subresource)
