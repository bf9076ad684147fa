"""Who is who in an installation: the names that policies and roles are rendered with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SIGNERS_CONFIG_MAP: Final = "praxis-allowed-signers"
"""In the namespace of the installation: who may sign decisions, with which keys."""


@dataclass(frozen=True)
class Names:
    """Where PRAXIS is installed, under which service accounts it works, and which group of people may approve."""

    namespace: str = "praxis-system"
    operator_account: str = "praxis-operator"
    gateway_account: str = "praxis-gateway"
    approvers_group: str = "praxis-approvers"
    viewers_group: str = "praxis-viewers"
    signing_accounts: tuple[str, ...] = ()
    """User names of the GitOps controllers' service accounts that may create signed approvals; none by default."""

    @property
    def operator(self) -> str:
        """The user name under which the API server knows the operator."""
        return f"system:serviceaccount:{self.namespace}:{self.operator_account}"

    @property
    def gateway(self) -> str:
        """The user name under which the API server knows the gateway."""
        return f"system:serviceaccount:{self.namespace}:{self.gateway_account}"
