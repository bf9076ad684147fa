"""The tools of one operator: arguments checked, time bounded, every answer an Observation, also that there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pydantic import ValidationError

from praxis.clock import Clock, SystemClock
from praxis.errors import PraxisError
from praxis.evidence import cluster, functions
from praxis.evidence.arguments import (
    Arguments,
    FunctionStatus,
    ListEvents,
    ListPods,
    ListWorkloads,
    PodLogs,
    PrometheusQuery,
    PrometheusQueryRange,
)
from praxis.evidence.contract import FunctionReader, Observation, Scope, ToolSpec
from praxis.evidence.observation import Seen, failed, observe, one_line
from praxis.evidence.prometheus import Prometheus
from praxis.evidence.reader import ReadOnlyKube
from praxis.kube import Kube
from praxis.settings import OperatorSettings

Asked = TypeVar("Asked", bound=Arguments)

ARGUMENTS: Final = 8192
"""Longest arguments that are looked at, characters."""
KUBERNETES_SECONDS: Final = 30.0
PROMETHEUS_SECONDS: Final = 30.0
FUNCTION_SECONDS: Final = 60.0
"""Time limits of one call; of a function several pages of instances may be read."""


@dataclass(frozen=True)
class _Tool(Generic[Asked]):
    name: str
    description: str
    arguments: type[Asked]
    seconds: float
    look: Callable[[Scope, Asked], Awaitable[Seen]]

    async def call(self, scope: Scope, arguments: str) -> Observation:
        try:
            asked = self.arguments.model_validate_json(arguments.strip() or "{}")
        except ValidationError as error:
            return failed(arguments, f"invalid arguments: {_faults(error)}")
        try:
            async with asyncio.timeout(self.seconds):
                return observe(asked.asked(), await self.look(scope, asked))
        except TimeoutError:
            return failed(asked.asked(), f"no answer within {self.seconds:g} s")
        except PraxisError as error:
            return failed(asked.asked(), str(error))


class EvidenceToolbox:
    """The Toolbox over the cluster, and over Prometheus and functions where there are such."""

    def __init__(
        self,
        *,
        kube: ReadOnlyKube,
        prometheus_url: str | None = None,
        functions: FunctionReader | None = None,
        clock: Clock | None = None,
    ) -> None:
        clock = clock or SystemClock()
        tools = [*_of_cluster(kube), *_of_prometheus(prometheus_url, clock), *_of_functions(functions, clock)]
        self._tools: dict[str, _Tool[Any]] = {tool.name: tool for tool in tools}

    @classmethod
    def from_settings(
        cls, settings: OperatorSettings, *, kube: Kube, functions: FunctionReader | None, clock: Clock | None = None
    ) -> EvidenceToolbox:
        """The toolbox that the settings describe."""
        return cls(kube=ReadOnlyKube(kube), prometheus_url=settings.prometheus_url, functions=functions, clock=clock)

    def specs(self) -> Sequence[ToolSpec]:
        """The tools that are configured."""
        return [
            ToolSpec(name=tool.name, description=tool.description, parameters=tool.arguments.schema_for_model())
            for tool in self._tools.values()
        ]

    async def call(self, scope: Scope, name: str, arguments: str) -> Observation:
        """Call a tool with the JSON that the model wrote. Never raises for that, nor for an outage."""
        tool = self._tools.get(name)
        if tool is None:
            return failed(arguments, f"there is no tool {one_line(name)[:64]!r}; there are {', '.join(self._tools)}")
        if len(arguments) > ARGUMENTS:
            return failed("", f"the arguments are longer than {ARGUMENTS} characters")
        return await tool.call(scope, arguments)


def _of_cluster(kube: ReadOnlyKube) -> list[_Tool[Any]]:
    return [
        _Tool(
            "list_events",
            "The most recent Kubernetes events of the incident's namespace, newest first.",
            ListEvents,
            KUBERNETES_SECONDS,
            lambda scope, asked: cluster.events(kube, scope, asked),
        ),
        _Tool(
            "list_pods",
            "Pods of the incident's namespace, unhealthy first: phase, restarts, why containers ended, images, node.",
            ListPods,
            KUBERNETES_SECONDS,
            lambda scope, asked: cluster.pods(kube, scope, asked),
        ),
        _Tool(
            "pod_logs",
            "The last lines of a container's log, or of its instance before the last restart.",
            PodLogs,
            KUBERNETES_SECONDS,
            lambda scope, asked: cluster.logs(kube, scope, asked),
        ),
        _Tool(
            "list_workloads",
            "Deployments, StatefulSets, DaemonSets and recent ReplicaSets of the incident's namespace: replicas, "
            "conditions, images, rollout revision and time.",
            ListWorkloads,
            KUBERNETES_SECONDS,
            lambda scope, asked: cluster.workloads(kube, scope, asked),
        ),
    ]


def _of_prometheus(url: str | None, clock: Clock) -> list[_Tool[Any]]:
    if url is None:
        return []
    prometheus = Prometheus(base_url=url, clock=clock, timeout=PROMETHEUS_SECONDS)
    return [
        _Tool(
            "prometheus_query",
            "The value of a PromQL expression now, or some minutes ago.",
            PrometheusQuery,
            PROMETHEUS_SECONDS,
            lambda _, asked: prometheus.query(asked),
        ),
        _Tool(
            "prometheus_query_range",
            "A PromQL expression over a window that ends now: for each series minimum, maximum, mean and some points.",
            PrometheusQueryRange,
            PROMETHEUS_SECONDS,
            lambda _, asked: prometheus.query_range(asked),
        ),
    ]


def _of_functions(reader: FunctionReader | None, clock: Clock) -> list[_Tool[Any]]:
    if reader is None:
        return []
    return [
        _Tool(
            "function_status",
            "State, last update, names of the environment and active instances with their ages of a declared function.",
            FunctionStatus,
            FUNCTION_SECONDS,
            lambda scope, asked: functions.status(reader, clock, scope, asked),
        )
    ]


def _faults(error: ValidationError) -> str:
    """What is wrong with which argument; not what the value was, which may be anything."""
    return "; ".join(
        f"{'.'.join(str(each) for each in fault['loc']) or 'arguments'}: {fault['msg']}" for fault in error.errors()[:8]
    )
