"""A notification's body, from untrusted bytes to a `Notification`, or a sentence that says what is wrong and where.

The format is Alertmanager's webhook payload, version 4 (https://prometheus.io/docs/alerting/latest/configuration/
#webhook_config); fields come and go between its releases, so unknown ones are ignored. What two readers could take
differently is refused: a name that occurs twice, NaN, half a surrogate pair. Everything kept is redacted and bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NoReturn

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from praxis.api import bounds
from praxis.api.base import RFC3339
from praxis.api.incident import Alert, Authentication
from praxis.clock import parse_rfc3339
from praxis.digest import digest
from praxis.intake.bounding import (
    ALERT_BYTES,
    ANNOTATIONS_FIRST,
    LABELS_FIRST,
    address,
    cut,
    line,
    pairs,
    stored_bytes,
)
from praxis.intake.group import Group
from praxis.redaction import redact

VERSION: Final = "4"
TRUNCATED: Final = 10**9
"""No Alertmanager has more alerts; the API server stores 64-bit integers."""
GROUP_KEY: Final = 1024
"""Longest group key that an Incident shows, characters; its name tells longer ones apart."""
SUMMARY: Final = 1024
SEVERITY: Final = 64
SENTENCE: Final = 400
"""Longest description of what is wrong, characters."""
ALERT_FRAME: Final = 256
"""Bytes of an alert beside its texts: field names, status and times."""
OBJECT_ERRORS: Final = ("model_type", "dict_type")
"""pydantic's words for them name classes of Python."""
SEVERITIES: Final = ("critical", "page", "error", "high", "warning", "medium", "low", "info", "none")
"""Usual words from the most urgent on; a group whose alerts differ has that of its most urgent one."""


def _whole(text: str) -> str:
    if any("\ud800" <= each <= "\udfff" for each in text):
        raise ValueError("half of a surrogate pair is no character")
    return text


def _named(text: str) -> str:
    if not text:
        raise ValueError("empty: it must tell this group from others")
    return text


def _moment(text: str) -> str:
    if re.fullmatch(RFC3339, text) is None:
        raise ValueError("not an RFC 3339 time such as 2026-01-31T12:00:00Z")
    parse_rfc3339(text)
    return text


String = Annotated[str, AfterValidator(_whole)]
Moment = Annotated[str, AfterValidator(_moment)]
Pairs = dict[String, String]
Fingerprint = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z._:-]{1,64}$")]


class _Wire(BaseModel):
    """A part of the body as it is sent; strict: a number is no string."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class _WireAlert(_Wire):
    status: Literal["firing", "resolved"]
    labels: Pairs
    annotations: Pairs | None = None
    startsAt: Moment  # noqa: N815  # Alertmanager's names, so that an error names the field that was sent
    endsAt: Moment | None = None  # noqa: N815
    generatorURL: String | None = None  # noqa: N815
    fingerprint: Fingerprint | None = None


class _WireNotification(_Wire):
    version: Literal["4"] = "4"
    groupKey: Annotated[String, AfterValidator(_named)]  # noqa: N815
    truncatedAlerts: Annotated[int, Field(ge=0, le=TRUNCATED)] = 0  # noqa: N815
    groupLabels: Pairs | None = None  # noqa: N815
    commonLabels: Pairs | None = None  # noqa: N815
    commonAnnotations: Pairs | None = None  # noqa: N815
    externalURL: String | None = None  # noqa: N815
    alerts: Annotated[list[_WireAlert], Field(min_length=1)]


@dataclass(frozen=True)
class Notification:
    """What a sender says of a group: redacted and bounded, each alert once."""

    group: Group
    authentication: Authentication
    group_key: str
    external_url: str | None
    summary: str
    severity: str
    alerts: tuple[Alert, ...]
    truncated: int
    """How many alerts the sender left out; they may be firing."""

    @property
    def firing(self) -> bool:
        """Whether any alert fires, or may: truncated alerts never count as cleared."""
        return self.truncated > 0 or any(alert.firing for alert in self.alerts)


def parse(body: bytes, *, receiver: str, authentication: Authentication) -> Notification:
    """Read a body.

    Raises:
        ValueError: it is no Alertmanager notification; the message is a sentence for the sender, without secrets.
    """
    document = _json(body)
    try:
        sent = _WireNotification.model_validate(document)
    except ValidationError as error:
        raise ValueError(_sentence(error)) from error
    group_labels = sent.groupLabels or {}
    return Notification(
        group=Group(receiver=receiver, key=sent.groupKey),
        authentication=authentication,
        group_key=cut(redact(sent.groupKey), GROUP_KEY),
        external_url=address(sent.externalURL),
        summary=_summary(sent),
        severity=_severity(sent),
        alerts=_once([_alert(each, first=(*sorted(group_labels), *LABELS_FIRST)) for each in sent.alerts]),
        truncated=sent.truncatedAlerts,
    )


def _alert(sent: _WireAlert, *, first: Sequence[str]) -> Alert:
    url = address(sent.generatorURL)
    room = ALERT_BYTES - ALERT_FRAME - stored_bytes(url or "")
    labels, room = pairs(sent.labels, first=first, length=bounds.LABEL_VALUE, room=room)
    annotations, _ = pairs(sent.annotations or {}, first=ANNOTATIONS_FIRST, length=bounds.ANNOTATION_VALUE, room=room)
    resolved = sent.status == "resolved"
    return Alert(
        fingerprint=sent.fingerprint or digest(sent.labels).removeprefix("sha256:")[:16],
        status=sent.status,
        starts_at=sent.startsAt,
        # A firing alert's end is a zero time, or a guess that moves with every notification.
        ends_at=sent.endsAt if resolved else None,
        labels=labels,
        annotations=annotations,
        generator_url=url,
    )


def _once(alerts: Sequence[Alert]) -> tuple[Alert, ...]:
    """Each fingerprint once: the later start counts, of two that began together the one that fires."""
    told: dict[str, Alert] = {}
    for alert in alerts:
        known = told.get(alert.fingerprint)
        if known is None or _rank(alert) > _rank(known):
            told[alert.fingerprint] = alert
    return tuple(told.values())


def _rank(alert: Alert) -> tuple[Any, bool]:
    return parse_rfc3339(alert.starts_at), alert.firing


def _summary(sent: _WireNotification) -> str:
    common = sent.commonAnnotations or {}
    leading = next((each for each in sent.alerts if each.status == "firing"), sent.alerts[0])
    of_alert = leading.annotations or {}
    names = ("summary", "description", "message")
    candidates = [*(common.get(name) for name in names), *(of_alert.get(name) for name in names)]
    candidates += [(sent.commonLabels or {}).get("alertname"), leading.labels.get("alertname"), sent.groupKey]
    return next((text for each in candidates if each and (text := line(each, SUMMARY))), "")


def _severity(sent: _WireNotification) -> str:
    """The group's severity, else that of the most urgent alert that fires, else none."""
    for labels in (sent.commonLabels, sent.groupLabels):
        if labels and labels.get("severity"):
            return line(labels["severity"], SEVERITY)
    firing = [
        each.labels["severity"] for each in sent.alerts if each.status == "firing" and each.labels.get("severity")
    ]
    return line(min(firing, key=_urgency, default=""), SEVERITY)


def _urgency(severity: str) -> int:
    word = severity.lower()
    return SEVERITIES.index(word) if word in SEVERITIES else len(SEVERITIES)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise ValueError(f"the body is not UTF-8: byte {error.start} cannot be decoded") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise ValueError("the body is nested too deeply") from error


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(members)
    if len(document) != len(members):
        names = [name for name, _ in members]
        twice = next(name for name in document if names.count(name) > 1)
        raise ValueError(f"the name {_shown(twice)} occurs twice in one object")
    return document


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _sentence(error: ValidationError) -> str:
    first, *others = error.errors(include_url=False, include_context=False, include_input=False)
    if not first["loc"]:
        return "the body is not a JSON object"
    fault = "Input should be an object" if first["type"] in OBJECT_ERRORS else first["msg"]
    text = f"{_place(first['loc'])}: {fault.removeprefix('Value error, ')}"
    return cut(text + (f" (and {len(others)} more)" if others else ""), SENTENCE)


def _place(location: Sequence[int | str]) -> str:
    path = ""
    for each in location:
        path += f"[{each}]" if isinstance(each, int) else f".{_shown(each)}" if path else _shown(each)
    return path


def _shown(name: str) -> str:
    return line(name.encode(errors="replace").decode(), 64)
