"""Lives of incidents through the real parts, with secrets wherever something is said."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

from praxis.api.incident import Incident
from praxis.clock import rfc3339
from praxis.controlplane import ControlPlane
from praxis.demo.function_compute import Fault
from praxis.demo.function_compute.faults import Body, Kind
from praxis.demo.processes import Running
from praxis.demo.stack import QUICK, WEBHOOK_TOKEN, Service, Stack
from praxis.machine import Phase
from tests.e2e.life import PATIENCE_SECONDS, praxis, reached
from tests.evidence.kubelet import Kubelet
from tests.secrets import sources
from tests.secrets.corpus import Planted, corpus, some
from tests.secrets.model import LeakingModel

SETTINGS = {
    **QUICK,
    "PRAXIS_ACTIONS__VERIFY_DEADLINE": "8",
    "PRAXIS_ACTIONS__DISPATCH_WINDOW": "3",
    "PRAXIS_ACTIONS__REQUEST_TIMEOUT": "3",
}
SERVICES = tuple(Service(f"leak{number}") for number in range(4))
ALERTS, LABELS, ANNOTATIONS = "alerts", "labels of alerts", "annotations of alerts across their limit"
LOGS, EVENTS, ENVIRONMENT = "pod logs", "Kubernetes events", "environment variables"
SERVICE_ERRORS, PEOPLE, METRICS, REFUSED = "errors of the service", "people", "metrics", "refused notifications"
SENTENCE = 1024
BEGAN = datetime(2026, 1, 31, 12, tzinfo=UTC)


@dataclass
class House:
    """What ran, what was planted, and what was received."""

    stack: Stack
    model: LeakingModel
    kubelet: Kubelet
    prometheus: sources.Prometheus
    operator: Running
    gateway: Running
    planted: list[Planted] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    metrics: dict[str, bytes] = field(default_factory=dict)

    def plant(self, *planted: Planted) -> tuple[Planted, ...]:
        """Note what is planted."""
        self.planted += planted
        return planted

    def live(self) -> None:
        """Every life, one after the other."""
        self.surround()
        self.be_refused()
        self.resolve()
        self.object()
        self.stay_unknown()
        self.fail()
        self.planted += self.model.used
        for process in (self.operator, self.gateway):
            with urllib.request.urlopen(f"http://127.0.0.1:{process.port}/metrics", timeout=10) as answer:
                self.metrics[process.name] = answer.read()

    def surround(self) -> None:
        """Logs, Events and environments that hold secrets; the log's lines, and its bounds, are met in every order."""
        logs = self.plant(*corpus(LOGS))
        for number, chunk in enumerate(batches(logs, 24)):
            name = f"planted-{number}"
            self.stack.apply([_in(self.stack, sources.pod(name, environment=self.plant(*some(f"pod {number}", 8))))])
            self.kubelet.logs[name] = "\n".join(each.text for each in chunk).encode()
        self.model.pods = cycle(list(self.kubelet.logs))
        notes = self.plant(*some(EVENTS, 48))
        self.stack.apply(
            [
                _event(self.stack, number, "\n".join(each.text for each in chunk))
                for number, chunk in enumerate(batches(notes, 4))
            ]
        )
        for service in SERVICES:
            environment = {
                f"SETTING_{number}": each.text
                for number, each in enumerate(self.plant(*some(f"{ENVIRONMENT} of {service.name}", 24)))
            }
            self.stack.emulator.deploy(service.name, environment)

    def be_refused(self) -> None:
        """Notifications that are no notifications, and senders who are none."""
        for planted in self.plant(*some(REFUSED, 24)):
            for body in (planted.text, json.dumps({"version": planted.text}), json.dumps({planted.text: 1})):
                assert self._post(body, WEBHOOK_TOKEN) in {400, 413, 422}
            token = "".join(each for each in planted.text if each.isalnum())
            assert self._post("{}", token) == 401

    def resolve(self) -> None:
        """Fires, fails for a while at service and model, is approved, applied, clears and is remembered."""
        service = SERVICES[0]
        self.model.failing = 4
        self.trouble(service, "GetFunction", times=4, status=500)
        waiting = self.fire(service)
        done = self.decide("approve", waiting, "--reason", self.said(f"{PEOPLE} approve"))
        assert done.returncode == 0, done.stderr
        reached(self.stack, waiting.metadata.name, Phase.OBSERVING)
        status, _ = self.stack.post(notification(service, waiting_alerts(service), ended=True))
        assert status in {200, 202}
        self.incidents.append(
            self.stack.wait(
                waiting.metadata.name,
                lambda each: any(c.type == "MemoryStored" and c.status == "True" for c in each.status.conditions),
                timeout=PATIENCE_SECONDS,
            )
        )

    def object(self) -> None:
        """Sent back with corrections, rejected, dismissed."""
        waiting = self.fire(SERVICES[1])
        corrections = [f"--correction={self.said(f'{PEOPLE} correct {number}')}" for number in range(6)]
        for number, (verb, more) in enumerate([("revise", corrections), ("reject", []), ("dismiss", [])], start=1):
            reason = [f"--reason={self.said(f'{PEOPLE} {verb}')}"]
            done = self.decide(verb, waiting, *more, *reason)
            assert done.returncode == 0, (verb, done.stderr, done.stdout)
            if verb != "dismiss":
                waiting = self.stack.wait(
                    waiting.metadata.name,
                    lambda each, revision=number + 1: (
                        each.status.plan is not None  # type: ignore[misc]
                        and each.status.plan.revision == revision
                        and each.status.phase is Phase.AWAITING_APPROVAL
                    ),
                    timeout=PATIENCE_SECONDS,
                )
        self.incidents.append(reached(self.stack, waiting.metadata.name, Phase.CLOSED))

    def stay_unknown(self) -> None:
        """The service refuses with a text full of keys, and then fails so that nobody knows; a person finds out."""
        service = SERVICES[2]
        waiting = self.fire(service)
        self.trouble(service, "UpdateFunction", times=1, status=403)
        self.decide("approve", waiting, "--reason", self.said(f"{PEOPLE} approve once more"))
        again = self.stack.wait(
            waiting.metadata.name,
            lambda each: each.status.phase is Phase.AWAITING_APPROVAL and len(each.status.steps) == 1,
            timeout=PATIENCE_SECONDS,
        )
        self.trouble(service, "UpdateFunction", times=1, status=500)
        self.decide("approve", again)
        unknown = reached(self.stack, waiting.metadata.name, Phase.RECONCILIATION_REQUIRED)
        note = self.said(f"{PEOPLE} reconcile", limit=3000)
        done = self.decide("reconcile", unknown, "--observed=not-applied", f"--note={note}")
        assert done.returncode == 0, done.stderr
        self.incidents.append(self.stack.incident(unknown.metadata.name))

    def fail(self) -> None:
        """The model names targets and parameters that are secrets, until its attempts are used up."""
        self.model.hostile = True
        name = self.post(SERVICES[3])
        self.incidents.append(reached(self.stack, name, Phase.FAILED))
        self.model.hostile = False

    def trouble(self, service: Service, operation: str, *, times: int, status: int) -> None:
        """Errors of the service that repeat the request with its key."""
        for number, planted in enumerate(self.plant(*some(f"{SERVICE_ERRORS} {operation} {status}", times))):
            message = (
                f"{planted.text} in https://fc.example/2023-03-30/functions/{service.name}?AccessKeyId="
                f"{service.access_key}&Signature={service.secret}"
            )
            body = (Body.POP, Body.FC)[number % 2]
            fault = Fault(
                kind=Kind.STATUS, operation=operation, function=service.name, status=status, message=message, body=body
            )
            self.stack.emulator.arm(fault)

    def fire(self, service: Service) -> Incident:
        """Post alerts that hold secrets, and wait for the plan."""
        return reached(self.stack, self.post(service), Phase.AWAITING_APPROVAL)

    def post(self, service: Service) -> str:
        """Post alerts that hold secrets; the incident's name."""
        alerts = waiting_alerts(service)
        self.plant(*(each for alert in alerts for each in alert))
        status, answer = self.stack.post(notification(service, alerts))
        assert status in {200, 202}, answer
        return str(answer["incident"]).rsplit("/", maxsplit=1)[-1]

    def said(self, place: str, *, limit: int = SENTENCE) -> str:
        """What a person says, as much as fits, the last secret across the end of the status' message."""
        text = "this is why:"
        for planted in some(place, 200):
            if len(text) + len(planted.text) + 2 > limit:
                break
            self.plant(planted)
            text = f"{text}\n{planted.text}"
        return text

    def decide(self, verb: str, incident: Incident, *more: str) -> Any:
        """A person's command."""
        return praxis(self.stack, verb, incident.metadata.name, "--yes", *more)

    def _post(self, body: str, token: str) -> int:
        request = urllib.request.Request(  # the gateway of this stack, on loopback
            f"{self.stack.gateway_url}/v1/alertmanager",
            data=body.encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code


@contextmanager
def lived(plane: ControlPlane, directory: Path) -> Iterator[House]:
    """The installation with an operator, after every life."""
    with ExitStack() as opened:
        stack = opened.enter_context(Stack.up(plane, directory=directory, services=SERVICES, settings=SETTINGS))
        measured = corpus(METRICS)
        model, kubelet, prometheus = opened.enter_context(sources.running(plane, directory, measured=measured))
        [url] = some("Prometheus' URL", 200)[:1]
        user = url.needles[0]
        key = directory / "model-key"
        key.write_text("sk" + "-" + "5e1f" * 8)
        operator = stack.start_operator(
            PRAXIS_MODELS__BASE_URL=model.url,
            PRAXIS_MODELS__API_KEY_FILE=str(key),
            PRAXIS_PROMETHEUS_URL=f"http://prom:{user}@127.0.0.1:{prometheus.port}",
        )
        gateway = next(each for each in stack.started if each.name == "gateway")
        house = House(stack, model, kubelet, prometheus, operator, gateway)
        house.plant(*measured, url, *own_secrets(stack, key))
        house.live()
        yield house


def own_secrets(stack: Stack, key: Path) -> Iterator[Planted]:
    """The credentials that the installation itself runs with."""
    yield Planted("the model's key", "key", "", (key.read_text(),))
    yield Planted("the gateway's token", "token", "", (WEBHOOK_TOKEN,))
    for service in stack.services:
        yield Planted("the service's keys", "key", "", (service.secret,))


def batches(planted: Sequence[Planted], size: int) -> list[Sequence[Planted]]:
    """So many at a time."""
    return [planted[start : start + size] for start in range(0, len(planted), size)]


def waiting_alerts(service: Service) -> list[Sequence[Planted]]:
    """What each alert of a service holds."""
    return [
        *batches(some(f"{ALERTS} of {service.name}", 120), 12),
        *batches(some(f"{LABELS} of {service.name}", 24), 6),
    ]


def notification(service: Service, alerts: Sequence[Sequence[Planted]], *, ended: bool = False) -> dict[str, Any]:
    """An Alertmanager notification: secrets as annotations, across their limit, as labels, in URLs."""
    status = "resolved" if ended else "firing"
    group = {"alertname": "FunctionMemoryHigh", "service": service.name}
    told = {"summary": f"Memory of function {service.name} grows until it is out of memory"}
    return {
        "version": "4",
        "groupKey": f'{{}}:{{alertname="FunctionMemoryHigh", service="{service.name}"}} {alerts[0][0].text}',
        "truncatedAlerts": 0,
        "status": status,
        "receiver": "praxis",
        "groupLabels": group,
        "commonLabels": group,
        "commonAnnotations": told,
        "externalURL": f"http://alertmanager.demo:9093/?access_token={alerts[0][1].needles[0]}",
        "alerts": [
            {
                "status": status,
                "labels": {**group, "pod": f"pod-{number}", **_labels(number, held)},
                "annotations": {**told, **{f"note{at}": _note(at, each) for at, each in enumerate(held)}},
                "startsAt": rfc3339(BEGAN),
                "endsAt": rfc3339(BEGAN + timedelta(hours=1)) if ended else "0001-01-01T00:00:00Z",
                "generatorURL": f"http://u:{held[0].needles[0]}@prometheus.demo:9090/graph?g0.expr=up",
                "fingerprint": f"{number:016x}",
            }
            for number, held in enumerate(alerts)
        ],
    }


def _labels(number: int, held: Sequence[Planted]) -> dict[str, str]:
    return (
        {f"label{at}": each.text for at, each in enumerate(held)} if len(held) <= 6 else {"token": held[0].needles[0]}
    )


def _note(at: int, planted: Planted) -> str:
    return planted.across(2048) if at == 11 else planted.across(512) if at == 10 else planted.text


def _event(stack: Stack, number: int, note: str) -> dict[str, Any]:
    return _in(
        stack,
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"planted-{number}"},
            "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": "shop.demo/probe",
            "reportingInstance": "probe-0",
            "action": "Probe",
            "reason": "OutOfMemory",
            "type": "Warning",
            "note": note[:SENTENCE],
            "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "planted-0", "namespace": stack.namespace},
        },
    )


def _in(stack: Stack, document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "metadata": {**document["metadata"], "namespace": stack.namespace}}
