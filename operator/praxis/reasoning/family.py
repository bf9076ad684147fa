"""Which models may be asked, and where: Qwen only, on the one configured route.

The scripted model of the demo is no Qwen and never called one: its ids are accepted on a loopback address only, and a
remote host never serves anything but Qwen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from praxis.errors import NeedsPerson
from praxis.settings import ModelSettings, is_loopback

QWEN = re.compile(r"(?:qwen/)?qwen[a-z0-9._:-]*", re.IGNORECASE)
QWEN_EMBEDDING = re.compile(rf"text-embedding-v[0-9]+|{QWEN.pattern}", re.IGNORECASE)
SCRIPTED = re.compile(r"scripted-[a-z0-9-]+")
PORTS = {"https": 443, "http": 80}


class Family(StrEnum):
    """Who made a model."""

    QWEN = "qwen"
    SCRIPTED = "scripted"


class Provider(StrEnum):
    """Whose extensions of the protocol a host speaks."""

    MODEL_STUDIO = "model-studio"
    OPENROUTER = "openrouter"


@dataclass(frozen=True)
class Route:
    """The one place that requests may go to."""

    base_url: str
    scheme: str
    host: str
    port: int
    path: str
    loopback: bool

    @property
    def provider(self) -> Provider:
        """OpenRouter by its host; anything else is spoken to as Model Studio documents it."""
        return Provider.OPENROUTER if self.host == "openrouter.ai" else Provider.MODEL_STUDIO

    def covers(self, scheme: str, host: str, port: int | None, path: str) -> bool:
        """Whether a request stays on this route."""
        same_origin = (scheme, host, port or PORTS.get(scheme)) == (self.scheme, self.host, self.port)
        return same_origin and path.startswith(self.path + "/")


def route_of(settings: ModelSettings) -> Route:
    """The configured route, with every configured model held to the family.

    Raises:
        NeedsPerson: the URL or a model id is not allowed; says which setting to change.
    """
    route = _route(settings.base_url)
    _require(settings.fast, QWEN, "fast", "qwen-flash", route)
    _require(settings.reasoning, QWEN, "reasoning", "qwen3.7-max", route)
    _require(settings.embedding, QWEN_EMBEDDING, "embedding", "text-embedding-v4", route)
    return route


def family_of(model: str) -> Family | None:
    """The family that an id belongs to, None when it is foreign."""
    if QWEN_EMBEDDING.fullmatch(model):
        return Family.QWEN
    return Family.SCRIPTED if SCRIPTED.fullmatch(model) else None


def same_family(asked: str, answered: str) -> bool:
    """Whether the model that answered, by its own word, is of the family that was asked."""
    return (family := family_of(answered)) is not None and family == family_of(asked)


def _route(url: str) -> Route:
    fix = "set PRAXIS_MODELS__BASE_URL to https://<host>/<path of the OpenAI-compatible API>"
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as error:
        raise NeedsPerson(f"the models' base URL has no valid port; {fix}") from error
    if parts.scheme not in PORTS or not parts.hostname:
        raise NeedsPerson(f"the models' base URL is not an http(s) URL; {fix}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise NeedsPerson(f"the models' base URL holds credentials, a query or a fragment; {fix}")
    loopback = is_loopback(url)
    if parts.scheme == "http" and not loopback:
        raise NeedsPerson(f"plain http to {parts.hostname} would show the key and the prompts; {fix}")
    return Route(
        base_url=url.rstrip("/"),
        scheme=parts.scheme,
        host=parts.hostname,
        port=port or PORTS[parts.scheme],
        path=parts.path.rstrip("/"),
        loopback=loopback,
    )


def _require(model: str, qwen: re.Pattern[str], setting: str, example: str, route: Route) -> None:
    if qwen.fullmatch(model) or (SCRIPTED.fullmatch(model) and route.loopback):
        return
    fix = f"set PRAXIS_MODELS__{setting.upper()}, for example to {example}"
    if SCRIPTED.fullmatch(model):
        raise NeedsPerson(f"{model} is the scripted model, served on loopback only, not by {route.host}; {fix}")
    raise NeedsPerson(f"{model!r} is not of the Qwen family; {fix}")
