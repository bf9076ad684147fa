"""What the model may ask each tool, as the JSON Schema that it is shown and the check of what it writes. No extras."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from praxis.evidence.observation import one_line

ObjectName = Annotated[
    str,
    Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", description="Name of the object."),
]
Selector = Annotated[
    str,
    Field(
        min_length=1,
        max_length=512,
        pattern=r"^[A-Za-z0-9./_=!,() -]+$",
        description="Kubernetes label selector, for example app=checkout.",
    ),
]
Expression = Annotated[str, Field(min_length=1, max_length=1000, description="A PromQL expression.")]


class Arguments(BaseModel):
    """Arguments of a tool."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @classmethod
    def schema_for_model(cls) -> dict[str, Any]:
        """The JSON Schema, without the titles and the class's docstring that pydantic adds."""
        schema: dict[str, Any] = _untitled({"properties": {}, **cls.model_json_schema()})
        return {key: held for key, held in schema.items() if key != "description"}

    def asked(self) -> str:
        """What was asked, in a line: the arguments that were given, in the order of the schema."""
        given = self.model_dump(exclude_none=True)
        return " ".join(f"{name}={one_line(value)}" for name, value in given.items())


class ListEvents(Arguments):
    """Arguments of `list_events`."""

    object: Annotated[ObjectName | None, Field(description="Only events regarding the object of this name.")] = None
    limit: Annotated[int, Field(ge=1, le=100, description="At most so many, the most recent.")] = 40


class ListPods(Arguments):
    """Arguments of `list_pods`."""

    selector: Annotated[Selector | None, Field(description="Label selector, for example app=checkout.")] = None
    limit: Annotated[int, Field(ge=1, le=100, description="At most so many, the unhealthy first.")] = 40


class PodLogs(Arguments):
    """Arguments of `pod_logs`."""

    pod: Annotated[ObjectName, Field(description="Name of the pod.")]
    container: Annotated[ObjectName | None, Field(description="Container; needed when the pod has several.")] = None
    previous: Annotated[bool, Field(description="The log of the instance before the last restart.")] = False
    tail_lines: Annotated[int, Field(ge=1, le=500, description="So many of the last lines.")] = 100


class ListWorkloads(Arguments):
    """Arguments of `list_workloads`."""

    kind: Annotated[
        Literal["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"] | None, Field(description="Only of this kind.")
    ] = None
    name: Annotated[ObjectName | None, Field(description="Only the workload of this name and what belongs to it.")] = (
        None
    )
    limit: Annotated[int, Field(ge=1, le=100, description="At most so many.")] = 40


class PrometheusQuery(Arguments):
    """Arguments of `prometheus_query`."""

    query: Expression
    minutes_ago: Annotated[int, Field(ge=0, le=10080, description="Evaluate so many minutes in the past.")] = 0


class PrometheusQueryRange(Arguments):
    """Arguments of `prometheus_query_range`."""

    query: Expression
    minutes: Annotated[int, Field(ge=1, le=10080, description="Length of the window that ends now, minutes.")] = 60
    step_seconds: Annotated[
        int | None, Field(ge=1, le=86400, description="Resolution; made coarser when it gives too many points.")
    ] = None


class FunctionStatus(Arguments):
    """Arguments of `function_status`."""

    target: Annotated[
        ObjectName | None, Field(description="Name of the declared target; needed when the incident has several.")
    ] = None


def _untitled(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: {name: _untitled(each) for name, each in held.items()} if key == "properties" else _untitled(held)
            for key, held in schema.items()
            if key != "title"
        }
    return [_untitled(each) for each in schema] if isinstance(schema, list) else schema
