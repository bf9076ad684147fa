"""What must be installed for the invariants to hold, and how an installed object differs from it. Pure: no I/O.

The operator reads each object of `expected` afresh and refuses to go on when `differences` says anything at all: no
difference in a guard is harmless. An added matchCondition, a selector, an excluded rule, a parameter, an action other
than Deny, a failure policy of Ignore, a changed schema or rule: each weakens what people rely on when they approve.
"""

from __future__ import annotations

from typing import Any

from praxis.api import admission, crds
from praxis.api.accounts import Names

__all__ = ["Names", "differences", "expected"]

Document = dict[str, Any]
SHOWN = 120
"""Characters of a differing value that a message shows."""


def expected(names: Names) -> list[Document]:
    """The CRDs, policies and bindings that this build needs, whole."""
    return [*crds.documents(), *admission.documents(names)]


def differences(wanted: Document, installed: Document) -> list[str]:
    """How one installed object differs from the rendered one; empty when its spec is exactly the same.

    Labels, annotations and status are other people's; an object that is being deleted guards nothing.
    """
    metadata = installed.get("metadata", {})
    deleted = ["is being deleted"] if metadata.get("deletionTimestamp") else []
    return [
        *deleted,
        *_compared(wanted["apiVersion"], installed.get("apiVersion"), "apiVersion"),
        *_compared(wanted["kind"], installed.get("kind"), "kind"),
        *_compared(wanted["metadata"]["name"], metadata.get("name"), "metadata.name"),
        *_compared(wanted["spec"], installed.get("spec"), "spec"),
    ]


def _compared(wanted: Any, installed: Any, path: str) -> list[str]:
    if isinstance(wanted, dict) and isinstance(installed, dict):
        found = []
        for key in sorted(wanted.keys() | installed.keys()):
            at = f"{path}.{key}"
            if key not in installed:
                found.append(f"{at} is missing")
            elif key not in wanted:
                found.append(f"{at} was added: {_shown(installed[key])}")
            else:
                found += _compared(wanted[key], installed[key], at)
        return found
    if isinstance(wanted, list) and isinstance(installed, list) and len(wanted) == len(installed):
        return [
            each
            for index, (one, other) in enumerate(zip(wanted, installed, strict=True))
            for each in _compared(one, other, f"{path}[{index}]")
        ]
    if type(wanted) is type(installed) and wanted == installed:
        return []
    return [f"{path} is {_shown(installed)}, not {_shown(wanted)}"]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
