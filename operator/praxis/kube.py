"""The one asynchronous client for the Kubernetes API server: JSON in, JSON out, errors mapped by consequence.

`kubernetes_asyncio` brings configuration, authentication and transport; its generated models are not used, as they take
seconds to import and drop what they do not know. Nothing here retries: whoever writes decides what a lost answer means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote

import aiohttp
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, ApiException, Configuration

from praxis.api.base import GROUP, VERSION, Resource
from praxis.errors import AnswerLost, Refused, RetryLater
from praxis.redaction import fit

Document = dict[str, Any]
Method = Literal["GET", "POST", "PATCH", "DELETE"]

CONNECT_TIMEOUT_SECONDS = 5.0
REQUEST_TIMEOUT_SECONDS = 30.0
JSON = "application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
RETRIED_STATUSES = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Reply:
    """An answer of the API server and the time on its clock (`Date`, whole seconds; None when it sent none)."""

    document: Document
    server_time: datetime | None


def path_of(
    kind: type[Resource], namespace: str | None, name: str | None = None, subresource: str | None = None
) -> str:
    """The path of one of PRAXIS' resources; without a namespace, of all namespaces."""
    return resource_path(f"/apis/{GROUP}/{VERSION}", kind.plural, namespace, name, subresource)


def resource_path(
    api: str, plural: str, namespace: str | None, name: str | None = None, subresource: str | None = None
) -> str:
    """The path of any resource, with names quoted: `resource_path("/api/v1", "pods", "shop")`."""
    parts = [api]
    if namespace:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(plural)
    parts += [quote(part, safe="") for part in (name, subresource) if part]
    return "/".join(parts)


class Kube:
    """A connection as one identity. Use as an asynchronous context manager, or call `close`."""

    def __init__(self, api: ApiClient, *, request_timeout: float = REQUEST_TIMEOUT_SECONDS) -> None:
        self._api = api
        self._timeout = aiohttp.ClientTimeout(total=request_timeout, sock_connect=CONNECT_TIMEOUT_SECONDS)

    @classmethod
    async def connect(
        cls, kubeconfig: Path | None, *, request_timeout: float = REQUEST_TIMEOUT_SECONDS, user_agent: str = "praxis"
    ) -> Self:
        """Connect with a kubeconfig file, or, without one, as the pod's service account.

        Raises:
            kubernetes_asyncio.config.ConfigException: there is neither.
        """
        configuration = Configuration()
        if kubeconfig is not None:
            await config.load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)
        else:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        api = ApiClient(configuration)
        api.user_agent = user_agent
        return cls(api, request_timeout=request_timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    @property
    def api(self) -> ApiClient:
        """The library's own client, for its leader election."""
        return self._api

    @property
    def configuration(self) -> Configuration:
        """Server, certificate authority and credentials, for kopf's own connection."""
        return self._api.configuration

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Reply:
        """Read an object or a list, as stored: without `resourceVersion` the API server reads consistently.

        Raises:
            Refused: the server said no.
            RetryLater: it could not be asked, or could not answer.
        """
        return await self._request("GET", path, query=query)

    async def metadata(self, path: str, query: Mapping[str, str] | None = None) -> list[Document]:
        """Read the metadata of the objects of a list, without what they hold. Raises as `get`."""
        reply = await self._request("GET", path, query=query, accept=METADATA_LIST)
        return [item["metadata"] for item in reply.document.get("items") or []]

    async def text(self, path: str, query: Mapping[str, str] | None = None, *, limit: int) -> tuple[str, bool]:
        """Read plain text, such as a log, up to `limit` bytes; also whether there was more. Raises as `get`."""
        try:
            response = await self._call("GET", path, query, None, None, accept="*/*", stream=True)
            async with response:
                data = await response.content.read(limit + 1)
                while len(data) <= limit and (more := await response.content.read(limit + 1 - len(data))):
                    data += more
                if response.status >= 400:
                    raise _refusal(response.status, data.decode(errors="replace"))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise RetryLater(f"GET {path}: {_named(error)}") from error
        return data[:limit].decode(errors="replace"), len(data) > limit

    async def create(self, path: str, document: Document, query: Mapping[str, str] | None = None) -> Reply:
        """Create an object. Raises as `get`, and AnswerLost when it may have been created all the same."""
        return await self._request("POST", path, query=query, body=document, content_type=JSON)

    async def json_patch(self, path: str, operations: Sequence[Document]) -> Reply:
        """Apply a JSON patch. Raises as `create`."""
        return await self._request("PATCH", path, body=list(operations), content_type=JSON_PATCH)

    async def merge_patch(self, path: str, document: Document) -> Reply:
        """Apply a merge patch; put a resourceVersion into it, or it overwrites. Raises as `create`."""
        return await self._request("PATCH", path, body=document, content_type=MERGE_PATCH)

    async def delete(self, path: str) -> Reply:
        """Delete an object. Raises as `create`."""
        return await self._request("DELETE", path)

    async def _request(
        self,
        method: Method,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str | None = None,
        accept: str = JSON,
    ) -> Reply:
        try:
            response = await self._call(method, path, query, body, content_type, accept=accept, stream=False)
        except ApiException as error:
            body = error.body.decode(errors="replace") if isinstance(error.body, bytes) else error.body
            raise _refusal(int(error.status or 0), str(body or error.reason), write=method != "GET") from error
        except aiohttp.ClientConnectorError as error:
            raise RetryLater(f"{method} {path}: {_named(error)}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            kind = RetryLater if method == "GET" else AnswerLost
            raise kind(f"{method} {path}: {_named(error)}") from error
        date = response.getheader("Date")
        try:
            return Reply(json.loads(response.data), parsedate_to_datetime(date) if date else None)
        except ValueError as error:
            # Not the API server's own words: a proxy answered or cut it. The request may have been carried out.
            kind = RetryLater if method == "GET" else AnswerLost
            raise kind(f"{method} {path}: the answer is not JSON") from error

    async def _call(
        self,
        method: Method,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        content_type: str | None,
        *,
        accept: str,
        stream: bool,
    ) -> Any:
        headers = {"Accept": accept, "User-Agent": self._api.user_agent}
        if content_type:
            headers["Content-Type"] = content_type
        parameters = dict(query or {})
        await self._api.update_params_for_auth(headers, [], ["BearerToken"])
        return await self._api.rest_client.request(
            method,
            f"{self._api.configuration.host}{path}",
            query_params=parameters,
            headers=headers,
            body=body,
            _preload_content=not stream,
            _request_timeout=self._timeout,
        )


def _refusal(status: int, body: str, *, write: bool = False) -> Exception:
    try:
        message = str(json.loads(body).get("message") or body)
    except (ValueError, AttributeError):
        message = body
    message = fit(message, 2048)
    if status in RETRIED_STATUSES or status == 0:
        # A 5xx may come from a proxy that had already passed the write on, and etcd's own time-outs are 500 and 504;
        # 429 is said before anything is stored.
        lost = write and status != 429
        return (AnswerLost if lost else RetryLater)(f"the API server answered {status}: {message}")
    return Refused(message, status=status)


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
