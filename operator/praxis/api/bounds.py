"""Every bound of the resources, by name. The schemas in `crds/` are rendered with them; the API server holds them.

List lengths are what status writes cost (a trail of 64 entries makes a write five times as dear as one of a single
entry, measured on kube-apiserver 1.37), and CEL's cost limits need a bound on every list, map and string.
"""

from __future__ import annotations

from typing import Final

ALERTS: Final = 64
LABELS: Final = 32
LABEL_VALUE: Final = 512
ANNOTATION_VALUE: Final = 2048
PLANS: Final = 4
ACTIONS: Final = 4
PARAMETERS: Final = 8
APPROVALS: Final = 4
STEPS: Final = PLANS * ACTIONS
TRAIL: Final = 64
EVIDENCE: Final = 24
EXCERPT: Final = 4096
RECALLED: Final = 5
CLAIMS: Final = 8
CORRECTIONS: Final = 8
CORRECTIONS_KEPT: Final = PLANS * (CORRECTIONS + 1)
"""With the reason of each decision: whatever people say of all an incident's plans, the next one heeds it."""
PARTS: Final = 64
"""Parts of a function's configuration that are told apart, to say which one changed."""
INSTANCES: Final = 64
CONDITIONS: Final = 12
GUARDS: Final = 24
STATUS_BYTES: Final = 512 * 1024
EMBEDDING_DIMENSIONS: Final = 1024
