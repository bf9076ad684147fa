"""What the API server itself holds, as CEL rules of the CRDs: named, placed and worded.

The transition table is one of them (`praxis.machine.transition_rule`); everything else that an incident's history must
obey stands here. `self` and `oldSelf` are the value at the rule's place after and before a write; a rule that names
`oldSelf` is not asked on creation. CEL cannot hash and has no clock: it sees that the trail is linked, not that a hash
is right, and never that an approval expired. Those are the operator's.

Rules on an item of a list cost about 80 microseconds an item and write (kube-apiserver 1.37), rules on the whole list a
microsecond an item: long lists have rules on the list only.
"""

from praxis.api.rules.execution import DOOR, PLAN, STEPS
from praxis.api.rules.phases import PHASES, SPEC, TRAIL
from praxis.api.rules.statements import APPROVAL, RECONCILIATION, TARGET
from praxis.api.rules.vocabulary import Rule

__all__ = ["APPROVAL", "INCIDENT", "RECONCILIATION", "TARGET", "Rule"]

INCIDENT: tuple[Rule, ...] = (*PHASES, *TRAIL, *PLAN, *DOOR, *STEPS, *SPEC)
