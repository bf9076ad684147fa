"""The people's commands at the API server: with the user's own kubeconfig, one request at a time, JSON in and out.

`kubernetes` brings the kubeconfig, its credential plugins and the transport; its models are not used, as they drop what
they do not know. Nothing is repeated here: a person sees what happened and decides.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Literal, Self

import urllib3
import urllib3.exceptions
import yaml
from kubernetes.client import ApiClient, ApiException, Configuration
from kubernetes.config import ConfigException, list_kube_config_contexts, load_kube_config
from pydantic import ValidationError

from praxis.api.base import GROUP, Resource
from praxis.api.incident import Incident
from praxis.errors import AnswerLost, NeedsPerson, Refused, RetryLater
from praxis.kube import Document, path_of, resource_path

CONNECT_TIMEOUT_SECONDS = 5.0
READ_TIMEOUT_SECONDS = 30.0
UNANSWERED = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Identity:
    """Who the API server takes the user for, and the time on its clock (None when it sent none)."""

    username: str
    server_time: datetime | None


@dataclass(frozen=True)
class Impersonated:
    """Somebody as whom a request is made; the API server adds the groups that a service account is in."""

    user: str
    groups: tuple[str, ...] = ()

    @property
    def headers(self) -> list[tuple[str, str]]:
        """As the API server takes them: a header line for each group."""
        return [("Impersonate-User", self.user), *(("Impersonate-Group", group) for group in self.groups)]


@dataclass(frozen=True)
class Found:
    """An incident, and the document that it was read from: hashes are checked on what is stored, unknown fields too."""

    incident: Incident
    document: Document


class UserCluster:
    """A connection as the user, in one namespace. Use as a context manager, or call `close`."""

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self._api = api
        self.namespace = namespace

    @classmethod
    def connect(cls, *, kubeconfig: Path | None, context: str | None, namespace: str | None) -> Self:
        """Connect as kubectl would: `--kubeconfig`, KUBECONFIG or ~/.kube/config, and the context's namespace.

        Raises:
            NeedsPerson: there is no usable kubeconfig, or no such context.
        """
        # The library reads KUBECONFIG once, when it is imported; it is asked here so that a later change counts.
        location = str(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")
        configuration = Configuration()
        try:
            load_kube_config(config_file=location, context=context, client_configuration=configuration)
            contexts, current = list_kube_config_contexts(config_file=location)
        except (ConfigException, OSError, yaml.YAMLError, ValueError, TypeError, KeyError) as error:
            raise NeedsPerson(
                f"kubeconfig {location} cannot be used: {error}; name one with --kubeconfig or KUBECONFIG"
            ) from error
        configuration.retries = False
        chosen = next((each for each in contexts if each["name"] == context), current) if context else current
        api = ApiClient(configuration)
        api.user_agent = "praxis-cli"
        return cls(api, namespace or chosen["context"].get("namespace") or "default")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._api.close()

    def whoami(self, *, impersonated: Impersonated | None = None) -> Identity:
        """Who the user is, by the API server's own word; an approval must carry exactly this name.

        Raises:
            Refused, RetryLater: as the API server answers, or does not.
        """
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        document, server_time = self._request(
            "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, impersonated
        )
        return Identity(document["status"]["userInfo"]["username"], server_time)

    def review(self, path: str, document: Document, *, impersonated: Impersonated | None = None) -> Document:
        """Post a review, which stores nothing; perhaps as somebody else. Raises Refused, RetryLater, NeedsPerson."""
        return self._request("POST", path, document, impersonated)[0]

    def namespaces(self) -> list[str]:
        """The name of every namespace. Raises Refused, RetryLater, NeedsPerson."""
        items = self._request("GET", resource_path("/api/v1", "namespaces", None))[0].get("items") or []
        return [each["metadata"]["name"] for each in items]

    def incident(self, name: str) -> Found:
        """Read an incident, as stored now.

        Raises:
            Refused: there is none, or the user may not read it.
            RetryLater: the API server could not be asked.
            NeedsPerson: this version of the command does not understand what is stored.
        """
        document, _ = self._request("GET", path_of(Incident, self.namespace, name))
        try:
            return Found(Incident.parse(document), document)
        except ValidationError as error:
            raise NeedsPerson(
                f"incident {name} was stored by another version of PRAXIS than this command's; use the operator's: "
                f"{error.errors()[0]['msg']}"
            ) from error

    def read(self, kind: type[Resource], name: str) -> Document:
        """Read an object. Raises Refused, RetryLater."""
        return self._request("GET", path_of(kind, self.namespace, name))[0]

    def items(self, kind: type[Resource]) -> list[Document]:
        """Every object of a kind in the namespace. Raises Refused, RetryLater."""
        items: list[Document] = self._request("GET", path_of(kind, self.namespace))[0].get("items") or []
        return items

    def create(self, kind: type[Resource], manifest: Document) -> Document:
        """Create an object. Raises Refused, RetryLater, and AnswerLost when it may have been created all the same."""
        return self._request("POST", path_of(kind, self.namespace), manifest)[0]

    def _request(
        self,
        method: Literal["GET", "POST"],
        path: str,
        body: Document | None = None,
        impersonated: Impersonated | None = None,
    ) -> tuple[Document, datetime | None]:
        try:
            verb, url, headers, sent, _ = self._api.param_serialize(
                method,
                path,
                header_params={"Accept": "application/json", "Content-Type": "application/json"},
                body=body,
                auth_settings=["BearerToken"],
            )
            lines = urllib3.HTTPHeaderDict(headers)
            for name, value in impersonated.headers if impersonated else ():
                lines.add(name, value)
            timeout = (CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS)
            response = self._api.call_api(verb, url, lines, sent, _request_timeout=timeout)
            data = response.read()
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
            raise RetryLater(f"the API server at {self._api.configuration.host} cannot be reached: {error}") from error
        except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
            lost = AnswerLost if method == "POST" else RetryLater
            raise lost(f"the API server at {self._api.configuration.host} gave no answer: {error}") from error
        if response.status >= 400:
            raise _refusal(response.status, data, write=method == "POST")
        date = response.getheader("Date")
        return json.loads(data), parsedate_to_datetime(date) if date else None


def _refusal(status: int, data: bytes, *, write: bool) -> Exception:
    message = _message(data) or f"HTTP {status}"
    if status in UNANSWERED:
        lost = AnswerLost if write and status != 429 else RetryLater
        return lost(f"the API server answered {status}: {message}")
    if status == 401:
        return NeedsPerson(f"the API server does not know you (401): {message}; log in again")
    if status == 404 and not _names_an_object(data):
        return NeedsPerson(f"this cluster has no resources of {GROUP}: PRAXIS is not installed on it")
    return Refused(message, status=status)


def _status(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _message(data: bytes) -> str:
    return str(_status(data).get("message") or data.decode(errors="replace"))[:2048].strip()


def _names_an_object(data: bytes) -> bool:
    """Whether a 404 is about an object; about a path that is not served, it is plain text, or names nothing."""
    details = _status(data).get("details")
    return isinstance(details, dict) and bool(details.get("name"))
