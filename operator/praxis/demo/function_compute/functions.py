"""Emulated functions and the lives of their instances. Pure: time is passed in, in seconds by the service's clock."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

CONFIGURABLE = frozenset({"description", "runtime", "handler", "memorySize", "cpu", "timeout", "diskSize"})
"""Fields of a function that an update replaces; of its code nothing is kept."""


class _Seed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class FunctionSeed(_Seed):
    """A function to begin with, as JSON in camelCase; times in seconds."""

    name: str
    region: str = "cn-hangzhou"
    account_id: str = "1234567890"
    environment: dict[str, str] = {}
    instances: Annotated[int, Field(ge=0, description="How many run at the start.")] = 2
    age_seconds: Annotated[float, Field(ge=0, description="How old they are at the start.")] = 3600
    update_seconds: Annotated[float, Field(ge=0, description="How long an update is InProgress.")] = 0
    drain_seconds: Annotated[float, Field(ge=0, description="How long old instances live on after that.")] = 1
    start_seconds: Annotated[float, Field(ge=0, description="When new ones start, after the update.")] = 1.5
    replacements: Annotated[
        int | None, Field(ge=0, description="How many start; as many as ran before, if not given.")
    ] = None
    refuse_to_rotate: Annotated[bool, Field(description="Old instances stay in spite of an update.")] = False
    instance_clock_skew_seconds: Annotated[
        float, Field(description="How far createdTimeMs is off the clock of the other answers.")
    ] = 0
    page_limit: Annotated[int, Field(ge=1, description="Most instances in one page of ListInstances.")] = 100


class CredentialSeed(_Seed):
    """An access key and the functions that it may touch; none given means all."""

    access_key_id: str
    access_key_secret: str
    security_token: str | None = None
    functions: list[str] | None = None


class Seed(_Seed):
    """What the emulator begins with."""

    functions: list[FunctionSeed] = []
    credentials: list[CredentialSeed] = []


@dataclass
class Instance:
    """An instance, from `starts` until `ends`, with the environment that it was started with."""

    id: str
    starts: float
    environment: Mapping[str, str]
    ends: float | None = None

    def active(self, now: float) -> bool:
        """Whether it runs."""
        return self.starts <= now and (self.ends is None or now < self.ends)


@dataclass
class Function:
    """A function: its configuration, the update under way, its instances."""

    seed: FunctionSeed
    environment: dict[str, str]
    modified: float
    settled: float
    configuration: dict[str, Any] = field(default_factory=dict)
    former: dict[str, str] = field(default_factory=dict)
    instances: list[Instance] = field(default_factory=list)
    _turn: itertools.count[int] = field(default_factory=itertools.count)

    @classmethod
    def begin(cls, seed: FunctionSeed, now: float) -> Function:
        """The function as seeded, its instances already old."""
        start = now - seed.age_seconds
        function = cls(seed=seed, environment=dict(seed.environment), modified=start, settled=start)
        function.instances = [Instance(_new_id(), start, dict(seed.environment)) for _ in range(seed.instances)]
        return function

    def configure(self, changes: Mapping[str, Any], now: float) -> None:
        """UpdateFunction: replace the fields that are given, the environment as a whole."""
        self.configuration |= {name: changes[name] for name in CONFIGURABLE & changes.keys()}
        self.update(changes.get("environmentVariables", self.environment), now)

    def update(self, environment: Mapping[str, str], now: float) -> None:
        """Replace the environment; unless it refuses to rotate, the running instances drain and others start."""
        running = [each for each in self.instances if each.ends is None]
        self.former = dict(self.environment)
        self.environment = dict(environment)
        self.modified = now
        self.settled = now + self.seed.update_seconds
        if self.seed.refuse_to_rotate:
            return
        for each in running:
            each.ends = self.settled + self.seed.drain_seconds
        count = len(running) if self.seed.replacements is None else self.seed.replacements
        for _ in range(count):
            self.start(self.settled + self.seed.start_seconds)

    def start(self, at: float) -> Instance:
        """Start an instance; while an update is in progress it gets the former configuration, and drains with it."""
        stale = at < self.settled
        instance = Instance(_new_id(), at, dict(self.former if stale else self.environment))
        if stale and not self.seed.refuse_to_rotate:
            instance.ends = self.settled + self.seed.drain_seconds
        self.instances.append(instance)
        return instance

    def serve(self, now: float) -> Instance:
        """The instance that an invocation reaches: the active ones in turn, or one started for it."""
        active = self.active(now)
        return active[next(self._turn) % len(active)] if active else self.start(now)

    def active(self, now: float) -> list[Instance]:
        """The instances that run."""
        return [each for each in self.instances if each.active(now)]

    def describe(self, now: float) -> dict[str, Any]:
        """The GetFunction answer."""
        seed = self.seed
        return {
            "functionName": seed.name,
            "functionArn": f"acs:fc:{seed.region}:{seed.account_id}:functions/{seed.name}",
            "functionId": str(uuid.uuid5(uuid.NAMESPACE_URL, seed.name)),
            "runtime": "python3.10",
            "handler": "index.handler",
            "memorySize": 512,
            "cpu": 0.35,
            "timeout": 60,
            "codeChecksum": "2825179536350711",
            "createdTime": _rfc3339(0),
            **self.configuration,
            "lastModifiedTime": _rfc3339(self.modified),
            "environmentVariables": dict(self.environment),
            "state": "Active",
            "lastUpdateStatus": "InProgress" if now < self.settled else "Successful",
        }

    def describe_instances(self, now: float) -> list[dict[str, Any]]:
        """The entries of a ListInstances answer, oldest first."""
        return [
            {
                "instanceId": each.id,
                "versionId": "0",
                "qualifier": "LATEST",
                "status": "Running",
                "createdTimeMs": int((each.starts + self.seed.instance_clock_skew_seconds) * 1000),
                "destroyedTimeMs": 0,
            }
            for each in sorted(self.active(now), key=lambda each: (each.starts, each.id))
        ]


def _new_id() -> str:
    return f"c-{uuid.uuid4()}"


def _rfc3339(moment: float) -> str:
    return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
