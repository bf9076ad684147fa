"""The demo's three incidents, end to end; every fact that is shown or reported is read back from where it is kept."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from praxis.api.base import API_VERSION
from praxis.api.incident import EntryKind, Incident
from praxis.clock import SystemClock, rfc3339
from praxis.demo import alerts
from praxis.demo.function_compute import Fault
from praxis.demo.function_compute.faults import Kind
from praxis.demo.screen import Screen
from praxis.demo.stack import NAMES, PRAXIS, Stack
from praxis.demo.surroundings import surroundings
from praxis.machine import TERMINAL, Phase

PERSON = "alice"
PATIENCE_SECONDS = 120.0
PERSON_PATIENCE_SECONDS = 24 * 3600.0
NEW_EPISODE_SECONDS = 2
"""Between the end of an alert and its return: `startsAt` tells episodes apart."""


class Unexpected(Exception):
    """The demo did not go as it should; the message says where."""


@dataclass
class Story:
    """Tells the demo and keeps what it reports."""

    stack: Stack
    screen: Screen
    ask: bool
    incidents: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[dict[str, str]] = field(default_factory=list)
    clock: SystemClock = field(default_factory=SystemClock)
    _phase: dict[str, Phase] = field(default_factory=dict)

    def tell(self) -> None:
        """All of it.

        Raises:
            Unexpected, TimeoutError: something did not happen.
        """
        first = self.resolved()
        self.cut_off()
        self.recurrence(first)

    def resolved(self) -> Incident:
        """An alert, a plan, a person's approval, one restart with proof, Resolved, remembered."""
        self.screen.chapter("An alert fires at 3am")
        began = self.clock.now() - timedelta(minutes=5)
        self.surround("checkout", "out of memory: checkout was killed at its memory limit", "OutOfMemory")
        waiting = self.fire(alerts.memory_leak("checkout", began=began))
        self.screen.command("kubectl get incidents -A", self.kubectl("get", "incidents", "-A"))
        self.show_plan(waiting)
        self.refuse(waiting)
        self.approve(waiting)
        observing = self.follow(waiting.metadata.name, lambda each: each.status.phase is Phase.OBSERVING)
        self.show_execution(observing)
        self.screen.say("The alert clears; Alertmanager says so.")
        self.stack.post(alerts.memory_leak("checkout", began=began, ended=self.clock.now()))
        resolved = self.follow(waiting.metadata.name, remembered)
        self.screen.command(
            f"kubectl describe incident {resolved.metadata.name}   (its Events)", self.events(resolved.metadata.name)
        )
        self.report(resolved, Phase.RESOLVED)
        return resolved

    def cut_off(self) -> None:
        """A send that is cut off mid-way: nobody can know, so nobody says it worked."""
        self.screen.chapter("The connection is cut in the middle of the send")
        self.surround("payments", "panic: pool exhausted; payments keeps crashing", "HandlerPanics")
        self.stack.emulator.arm(Fault(kind=Kind.DROP_BEFORE, operation="UpdateFunction", function="payments"))
        waiting = self.fire(alerts.crash_loop("payments", began=self.clock.now() - timedelta(minutes=1)))
        self.approve(waiting)
        ended = self.follow(waiting.metadata.name, lambda each: each.status.phase in TERMINAL)
        self.show_execution(ended)
        self.screen.say(
            f"The target stays held until a person looks and says what they found:\n"
            f"  praxis reconcile {ended.metadata.name} -n {self.stack.namespace} --observed not-applied --note …"
        )
        self.report(ended, Phase.RECONCILIATION_REQUIRED)

    def recurrence(self, first: Incident) -> None:
        """The first alert again: another episode, and what helped is recalled."""
        self.screen.chapter("The first alert comes back")
        time.sleep(NEW_EPISODE_SECONDS)
        again = self.fire(alerts.memory_leak("checkout", began=self.clock.now()))
        for each in again.status.recalled:
            self.screen.item(f"recalled {each.incident} (score {each.score:.2f}): {each.summary}")
        if first.key not in {each.incident for each in again.status.recalled}:
            raise Unexpected(f"{again.metadata.name} recalls nothing of {first.metadata.name}")
        assert again.status.plan is not None
        self.screen.say(f"The plan says why: {again.status.plan.rationale}")
        self.report(again, Phase.AWAITING_APPROVAL)

    def fire(self, payload: dict[str, Any]) -> Incident:
        """Post an alert and follow its incident to the point where the operator stops."""
        self.screen.item(f"{payload['commonAnnotations']['summary']}")
        status, answer = self.stack.post(payload)
        if status != 202:
            raise Unexpected(f"the gateway answered {status}: {answer}")
        name = str(answer["incident"]).rsplit("/", maxsplit=1)[-1]
        self.screen.item(f"the gateway answered {status}: Incident {name}")
        return self.follow(name, lambda each: each.status.phase is Phase.AWAITING_APPROVAL)

    def follow(self, name: str, until: Callable[[Incident], bool]) -> Incident:
        """Show the phases as they pass. An incident that ends elsewhere is unexpected at once."""

        def ended(incident: Incident) -> bool:
            return until(incident) or incident.status.phase in {Phase.FAILED, Phase.CLOSED}

        def seen(incident: Incident) -> None:
            if self._phase.get(name) is not incident.status.phase:
                self._phase[name] = incident.status.phase
                self.screen.phase(incident.status.phase, incident.status.message or "the alert has arrived")

        incident = self.stack.wait(name, ended, timeout=PATIENCE_SECONDS, seen=seen)
        if not until(incident):
            raise Unexpected(f"{name} ended in {incident.status.phase}: {incident.status.message}")
        return incident

    def show_plan(self, incident: Incident) -> None:
        """What a person sees: evidence, diagnosis, plan."""
        self.screen.command(
            f"praxis show {incident.metadata.name} -n {self.stack.namespace}", self.praxis("show", incident)
        )

    def refuse(self, incident: Incident) -> None:
        """The API server refuses what the invariants forbid, whoever asks."""
        self.screen.chapter("What the API server refuses")
        namespace = self.stack.namespace
        operator = f"system:serviceaccount:{NAMES.namespace}:{NAMES.operator_account}"
        self.refused_approval(
            incident, operator, self.stack.identity(NAMES.operator_account), "the operator's own account"
        )
        robot = f"system:serviceaccount:{namespace}:robot"
        self.stack.plane.create_service_account(namespace, "robot")
        self.kubectl(
            "create", "rolebinding", "robot-approver", "-n", namespace, "--clusterrole=praxis-approver",
            f"--serviceaccount={namespace}:robot",
        )  # fmt: skip
        kubeconfig = self.stack.plane.service_account_kubeconfig(namespace, "robot")
        self.refused_approval(incident, robot, kubeconfig, "a robot that was given the approver role")
        jump = json.dumps({"status": {"phase": Phase.EXECUTING}})
        self.refused(
            "a jump into Executing, by the cluster's admin",
            "admin",
            [
                "patch",
                "incident",
                incident.metadata.name,
                "-n",
                namespace,
                "--subresource=status",
                "--type=merge",
                f"-p={jump}",
            ],
        )

    def refused_approval(self, incident: Incident, username: str, kubeconfig: Path, who: str) -> None:
        """An approval by somebody who is not a person."""
        manifest = self.approval(incident, username)
        self.refused(f"an approval by {who}", username, ["create", "-f", "-"], kubeconfig=kubeconfig, stdin=manifest)

    def approval(self, incident: Incident, username: str) -> str:
        """An approval of the plan, as a manifest."""
        assert incident.status.plan is not None
        return json.dumps(
            {
                "apiVersion": API_VERSION,
                "kind": "IncidentApproval",
                "metadata": {"generateName": f"{incident.metadata.name}-", "namespace": self.stack.namespace},
                "spec": {
                    "incidentRef": {"name": incident.metadata.name, "uid": incident.metadata.uid},
                    "planDigest": incident.status.plan.digest,
                    "decision": "Approve",
                    "approver": {"username": username},
                    "expiresAt": rfc3339(self.clock.now() + timedelta(hours=1)),
                },
            }
        )

    def refused(
        self, attempt: str, by: str, command: list[str], *, kubeconfig: Path | None = None, stdin: str | None = None
    ) -> None:
        """Run a command that the API server must refuse, and keep its words."""
        answer = self.stack.plane.kubectl(*command, kubeconfig=kubeconfig, stdin=stdin, check=False)
        if answer.returncode == 0:
            raise Unexpected(f"{attempt} was accepted")
        message = " ".join(answer.stderr.split())
        self.refusals.append({"attempt": attempt, "by": by, "message": message})
        self.screen.refusal(attempt, message)

    def approve(self, incident: Incident) -> None:
        """Wait for the person at the terminal, or stand in for one and say so."""
        self.screen.chapter("A person decides")
        kubeconfig = self.stack.person(PERSON)
        command = ["approve", incident.metadata.name, "-n", self.stack.namespace, "--kubeconfig", str(kubeconfig)]
        if self.ask:
            self.screen.say(
                f"The operator has stopped. Approve here, or from another terminal:\n  praxis {' '.join(command)}"
            )
            subprocess.run([*PRAXIS, *command], check=False)
            self.stack.wait(
                incident.metadata.name,
                lambda each: each.status.phase is not Phase.AWAITING_APPROVAL,
                timeout=PERSON_PATIENCE_SECONDS,
            )
            return
        self.screen.simulated(f"This approval is simulated: the demo approves with {PERSON}'s client certificate.")
        done = subprocess.run(
            [*PRAXIS, *command, "--yes", "--reason", "simulated by the demo"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise Unexpected(f"praxis approve ended with {done.returncode}: {done.stderr or done.stdout}")
        self.screen.command(f"praxis approve {incident.metadata.name} --yes", tail(done.stdout + done.stderr, 8))

    def show_execution(self, incident: Incident) -> None:
        """Intent, dispatch and proof."""
        for step in incident.status.steps:
            if step.intent is not None:
                before = ", ".join(each.id for each in step.intent.baseline.instances)
                self.screen.item(f"intent {step.intent.id} written at {step.intent.time}, before anything was sent")
                self.screen.item(f"instances before: {before}")
                sent = self.stack.emulator.dispatches(marker=step.intent.id)
                self.screen.item(f"dispatches that arrived at Function Compute: {len(sent)}")
            if step.outcome is not None:
                after = ", ".join(each.id for each in step.outcome.instances_after)
                self.screen.outcome(step.outcome.result, step.outcome.message)
                if step.outcome.proof:
                    self.screen.item(f"proof: {step.outcome.proof}")
                if after:
                    self.screen.item(f"instances after:  {after}")

    def report(self, incident: Incident, expected: Phase) -> None:
        """Keep what the API server and the emulator say of an incident.

        Raises:
            Unexpected: it is not where it should be, or was sent more often than it should.
        """
        status = incident.status
        if status.phase is not expected:
            raise Unexpected(f"{incident.metadata.name} is in {status.phase}, not in {expected}")
        step = next((each for each in status.steps if each.intent is not None), None)
        intent = step.intent if step else None
        outcome = step.outcome if step else None
        dispatches = len(self.stack.emulator.dispatches(marker=intent.id)) if intent else 0
        if dispatches > 1 or (expected is Phase.RESOLVED and dispatches != 1):
            raise Unexpected(f"{incident.metadata.name}: {dispatches} dispatches arrived")
        self.incidents.append(
            {
                "name": incident.metadata.name,
                "phases": [Phase.NEW, *(e.phase for e in status.trail if e.kind is EntryKind.PHASE_CHANGED)],
                "reason": status.reason,
                "planDigest": status.plan.digest if status.plan else None,
                "approver": status.approvals[0].approver if status.approvals else None,
                "intentId": intent.id if intent else None,
                "dispatches": dispatches,
                "instancesBefore": [each.id for each in intent.baseline.instances] if intent else [],
                "instancesAfter": [each.id for each in outcome.instances_after] if outcome else [],
                "recalled": [{"id": each.id, "score": each.score} for each in status.recalled],
            }
        )

    def surround(self, service: str, note: str, reason: str) -> None:
        """Give the evidence tools something to find."""
        self.stack.apply(surroundings(service, self.stack.namespace, note=note, reason=reason, now=self.clock.now()))

    def events(self, name: str) -> str:
        """The Events about an incident, in order."""
        columns = "custom-columns=TYPE:.type,REASON:.reason,MESSAGE:.note"
        return self.kubectl(
            "get", "events.v1.events.k8s.io", "-n", self.stack.namespace, f"--field-selector=regarding.name={name}",
            "--sort-by=.eventTime", "-o", columns,
        )  # fmt: skip

    def kubectl(self, *command: str) -> str:
        """What kubectl prints."""
        return str(self.stack.plane.kubectl(*command).stdout)

    def praxis(self, command: str, incident: Incident) -> str:
        """What the praxis command prints."""
        kubeconfig = str(self.stack.person(PERSON))
        done = subprocess.run(
            [*PRAXIS, command, incident.metadata.name, "-n", self.stack.namespace, "--kubeconfig", kubeconfig],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise Unexpected(f"praxis {command} ended with {done.returncode}: {done.stderr}")
        return done.stdout


def remembered(incident: Incident) -> bool:
    """Whether it is resolved and its memory is stored."""
    stored = incident.status.condition("MemoryStored")
    return incident.status.phase is Phase.RESOLVED and stored is not None and stored.status == "True"


def tail(text: str, lines: int) -> str:
    """The last lines of a text."""
    return "\n".join(text.rstrip().splitlines()[-lines:])


def on_a_terminal() -> bool:
    """Whether there is a person who can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()
