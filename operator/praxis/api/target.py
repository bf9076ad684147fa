"""RemediationTarget: what may be acted on, declared by an admin. Its spec never changes."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from praxis.api import bounds
from praxis.api.base import Line, Model, Name, Resource, Timestamp, Uid


class LabelSelector(Model):
    """Which alerts belong to a target: those that carry all of these labels."""

    match_labels: Annotated[
        dict[str, Annotated[str, Field(max_length=bounds.LABEL_VALUE)]],
        Field(min_length=1, max_length=bounds.LABELS, description="All of them must be on the alert."),
    ]


class FunctionCompute(Model):
    """A function of Alibaba Cloud Function Compute 3.0."""

    region: Annotated[
        str, Field(max_length=64, pattern="^[a-z0-9-]+$", description="Region id, for example ap-southeast-1.")
    ]
    account_id: Annotated[
        str, Field(max_length=32, pattern="^[0-9]+$", description="The account that owns the function.")
    ]
    function: Annotated[
        str, Field(max_length=64, pattern="^[A-Za-z_][A-Za-z0-9_-]*$", description="The function's name.")
    ]
    qualifier: Annotated[
        Literal["LATEST"],
        Field(description="LATEST: a published version is immutable, so nothing else can be restarted."),
    ] = "LATEST"
    endpoint: Annotated[
        str | None,
        Field(
            max_length=256,
            pattern=r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?$",
            description="Where the API answers, else the region's own endpoint; http only on loopback.",
        ),
    ] = None
    health_path: Annotated[
        str | None,
        Field(
            max_length=256,
            pattern="^/",
            description="A path at which the function answers with its instance id and PRAXIS_RESTART_ID: settles "
            "what the service's clocks cannot.",
        ),
    ] = None


class RemediationTargetSpec(Model):
    """What may be acted on, with which credentials, for which alerts."""

    kind: Annotated[Literal["FunctionCompute"], Field(description="The only kind so far.")]
    function_compute: Annotated[FunctionCompute, Field(description="The function.")]
    credentials_file: Annotated[
        str,
        Field(
            max_length=128,
            pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
            description="A file in the operator's credentials directory; its key must be limited to this function.",
        ),
    ]
    disposable: Annotated[bool, Field(description="Losing it costs nothing.")] = False
    alert_selector: Annotated[LabelSelector, Field(description="Which alerts belong to it.")]

    def matches(self, labels: dict[str, str]) -> bool:
        """Whether an alert with these labels belongs to this target."""
        return self.alert_selector.match_labels.items() <= labels.items()


class Holder(Model):
    """Which incident may act on the target."""

    incident_uid: Annotated[Uid, Field(description="uid of the incident.")]
    incident_name: Annotated[Name, Field(description="Its name.")]
    revision: Annotated[int, Field(ge=1, le=bounds.PLANS, description="The plan's revision.")]
    intent_id: Annotated[str, Field(min_length=8, max_length=64, description="The intent that it may write.")]
    writer: Annotated[Line, Field(description="The process that claimed it.")]
    claimed_at: Annotated[Timestamp, Field(description="When it was claimed.")]


class RemediationTargetStatus(Model):
    """Who holds the target."""

    holder: Annotated[Holder | None, Field(description="Who may act on it; absent when nobody does.")] = None


class RemediationTarget(Resource):
    """A declared, disposable function."""

    kind: ClassVar[str] = "RemediationTarget"
    plural: ClassVar[str] = "remediationtargets"

    spec: RemediationTargetSpec
    status: RemediationTargetStatus = RemediationTargetStatus()
