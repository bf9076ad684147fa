"""Configuration, read once at start into frozen objects: environment variables `PRAXIS_…`, secrets from files.

No setting switches off safety: there is none for the door, the digest, the intent or the policies.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from praxis.api import bounds
from praxis.api.plan import Tier

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
Seconds = Annotated[float, Field(gt=0)]
ReceiverName = Annotated[str, Field(max_length=32, pattern="^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")]
"""The names of Incidents begin with it: a DNS label, short enough to leave room for a digest and an episode number."""
ServiceAccountUser = Annotated[str, Field(pattern=r"^system:serviceaccount:[a-z0-9-]+:[a-z0-9.-]+$")]
"""As the API server knows a service account: the policies are rendered with it."""
QuorumOf = Annotated[int, Field(ge=1, le=bounds.APPROVALS)]


class Quorum(BaseModel):
    """How many distinct people must approve a plan, by its highest tier; none can be 0."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    safe: Annotated[QuorumOf, Field(description="Distinct people for a plan of tier safe.")] = 1
    caution: Annotated[QuorumOf, Field(description="Distinct people for a plan of tier caution.")] = 1
    dangerous: Annotated[QuorumOf, Field(description="Distinct people for a plan of tier dangerous.")] = 2

    def of(self, tier: Tier) -> int:
        """The number for a tier."""
        return {Tier.SAFE: self.safe, Tier.CAUTION: self.caution, Tier.DANGEROUS: self.dangerous}[tier]


class ModelSettings(BaseModel):
    """Where the models are and what they may cost."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    base_url: Annotated[
        str, Field(description="OpenAI-compatible base URL; keys are bound to a region, so is this.")
    ] = "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"
    api_key_file: Annotated[
        Path | None,
        Field(
            description="File with the key; else DASHSCOPE_API_KEY for Model Studio, OPENROUTER_API_KEY for OpenRouter."
        ),
    ] = None
    fast: Annotated[str, Field(description="Model for classification.")] = "qwen-flash"
    reasoning: Annotated[str, Field(description="Model for diagnosis and plan.")] = "qwen3.7-max"
    embedding: Annotated[str, Field(description="Model for embeddings of 1024 dimensions.")] = "text-embedding-v4"
    timeout: Annotated[Seconds, Field(description="For one model call, seconds.")] = 120
    output_tokens: Annotated[int, Field(ge=256, le=65_536, description="Most tokens of one answer.")] = 16_384
    tool_turns: Annotated[
        int, Field(ge=1, le=32, description="Turns of the diagnosis in which tools may be called.")
    ] = 8
    tokens_per_incident: Annotated[int, Field(ge=1000, description="Above this an incident stalls: BudgetSpent.")] = (
        400_000
    )


class Deadlines(BaseModel):
    """Seconds after which an incident that is still in a phase is stalled; Observing decides at its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    new: Annotated[Seconds, Field(description="For the classification.")] = 300
    triaged: Annotated[Seconds, Field(description="For evidence and diagnosis.")] = 900
    investigated: Annotated[Seconds, Field(description="For the plan.")] = 600
    awaiting_approval: Annotated[Seconds, Field(description="Then the incident is closed as ApprovalExpired.")] = (
        24 * 3600
    )
    executing: Annotated[Seconds, Field(description="For all actions and their verification.")] = 1800
    observing: Annotated[Seconds, Field(description="Then the remediation counts as not effective.")] = 1800


class ActionSettings(BaseModel):
    """How the one real write is sent and verified, seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    credentials_dir: Annotated[Path, Field(description="Where the targets' credentials files are mounted.")] = Path(
        "/var/run/praxis/credentials"
    )
    dispatch_window: Annotated[Seconds, Field(description="From before the intent's write to the send.")] = 15
    request_timeout: Annotated[Seconds, Field(description="For one request to the service.")] = 10
    verify_deadline: Annotated[Seconds, Field(description="For the proof; past it the outcome is Unknown.")] = 300
    poll_interval: Annotated[Seconds, Field(description="Between two looks at the service.")] = 2
    digest_key_file: Annotated[Path | None, Field(description="Key of the digests of environment values.")] = None


class RecorderSettings(BaseModel):
    """Where the full records behind the trails are kept, and for how long."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[Path, Field(description="SQLite file of the flight recorder; one for each replica.")] = Path(
        "/var/lib/praxis/recorder.db"
    )
    max_bytes: Annotated[
        int, Field(ge=64 * 1024 * 1024, description="Above this, those recorded to longest ago lose their records.")
    ] = 2 * 1024 * 1024 * 1024
    days: Annotated[
        float, Field(ge=1, description="Records of incidents that had none added for so many days are deleted.")
    ] = 400


class OperatorSettings(BaseSettings):
    """What `praxis operator` runs with."""

    model_config = SettingsConfigDict(
        env_prefix="PRAXIS_", env_nested_delimiter="__", frozen=True, extra="ignore", env_parse_none_str="none"
    )

    kubeconfig: Annotated[Path | None, Field(description="Else the pod's service account.")] = None
    namespaces: Annotated[list[str], Field(description="Namespaces to watch; none means all.")] = []
    installation_namespace: Annotated[str, Field(description="Where operator and gateway are installed.")] = (
        "praxis-system"
    )
    operator_account: Annotated[str, Field(description="The operator's service account.")] = "praxis-operator"
    gateway_account: Annotated[str, Field(description="The gateway's service account.")] = "praxis-gateway"
    signing_accounts: Annotated[
        list[ServiceAccountUser],
        Field(description="Service accounts of GitOps controllers that may create signed approvals; none by default."),
    ] = []
    models: ModelSettings = ModelSettings()
    quorum: Quorum = Quorum()
    deadlines: Deadlines = Deadlines()
    actions: ActionSettings = ActionSettings()
    prometheus_url: Annotated[str | None, Field(description="Prometheus to query; none: no metrics evidence.")] = None
    memory_path: Annotated[Path, Field(description="SQLite file of the embedded memory.")] = Path(
        "/var/lib/praxis/memory.db"
    )
    recorder: RecorderSettings = RecorderSettings()
    workers: Annotated[int, Field(ge=1, le=64, description="Incidents worked on at once.")] = 8
    attempts: Annotated[int, Field(ge=1, le=10, description="Invalid model answers in a phase before Failed.")] = 3
    resync_interval: Annotated[Seconds, Field(description="Everything is looked at again this often.")] = 60
    watch_deadline: Annotated[
        Seconds, Field(description="A watch that has not told of a change for so long is begun anew.")
    ] = 120
    lease_duration: Annotated[int, Field(ge=3, description="Seconds after which another replica may take over.")] = 15
    lease_renew: Annotated[Seconds, Field(description="Seconds between two renewals.")] = 5
    http_host: Annotated[str, Field(description="Address of the probes and metrics.")] = "0.0.0.0"  # noqa: S104  # outside the pod
    http_port: Annotated[
        int, Field(ge=0, le=65535, description="/healthz, /readyz, /metrics; 0 takes a free port.")
    ] = 8080

    @model_validator(mode="after")
    def _lease_is_renewed_in_time(self) -> OperatorSettings:
        if self.lease_renew * 2 > self.lease_duration:
            raise ValueError("lease_renew must be at most half of lease_duration")
        return self


class GatewaySettings(BaseSettings):
    """What `praxis gateway` runs with."""

    model_config = SettingsConfigDict(
        env_prefix="PRAXIS_GATEWAY_", frozen=True, extra="ignore", env_parse_none_str="none"
    )

    kubeconfig: Annotated[Path | None, Field(description="Else the pod's service account.")] = None
    namespace: Annotated[str, Field(description="Where Incidents are created; never taken from a label.")] = "default"
    receiver: Annotated[
        ReceiverName, Field(description="Receiver of bearer notifications, in the Incident's source and name.")
    ] = "alertmanager"
    webhook_receiver: Annotated[
        ReceiverName, Field(description="Receiver of signed notifications: no sender speaks for the other's alerts.")
    ] = "webhook"
    bearer_token_file: Annotated[
        Path | None, Field(description="Token that Alertmanager must send; one a line while it is rotated.")
    ] = None
    webhook_secret_file: Annotated[
        Path | None, Field(description="Standard Webhooks secret, whsec_…; one a line while it is rotated.")
    ] = None
    body_limit: Annotated[int, Field(ge=1024, le=1024 * 1024, description="Largest body, bytes.")] = 256 * 1024
    replay_window: Annotated[
        float,
        Field(gt=0, le=300, description="How far a signed timestamp may be off, seconds; the standard allows 300."),
    ] = 300
    read_timeout: Annotated[
        Seconds, Field(description="For a whole body to arrive, seconds; a slower one gets 503.")
    ] = 10
    host: Annotated[str, Field(description="Address to listen on.")] = "0.0.0.0"  # noqa: S104  # outside the pod
    port: Annotated[int, Field(ge=0, le=65535, description="0 takes a free port.")] = 8081
    concurrency: Annotated[
        int, Field(ge=1, le=256, description="Notifications worked on at once at each address; more get 503.")
    ] = 32

    @model_validator(mode="after")
    def _receivers_differ(self) -> GatewaySettings:
        if self.receiver == self.webhook_receiver:
            raise ValueError("receiver and webhook_receiver must differ: they keep the senders' alerts apart")
        return self


def is_loopback(url: str) -> bool:
    """Whether a URL points at this machine."""
    return (urlsplit(url).hostname or "") in LOOPBACK
