"""The ValidatingAdmissionPolicies: who may do what that RBAC and CRD rules cannot say.

RBAC knows no names inside objects, and CRD rules do not know who asks. The policies hold whatever RBAC grants, for
cluster-admin too; removing a binding is the audited break-glass, which the operator notices at every gate.

A custom resource reaches a policy untyped: times are strings, absent fields are absent. Every default of the API server
is written out, so that an installed `.spec` equals the rendered one exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from praxis.api.accounts import SIGNERS_CONFIG_MAP, Names
from praxis.api.approval import ARMOUR
from praxis.api.base import GROUP
from praxis.api.crds import LABELS

Document = dict[str, Any]

APPROVAL_HOURS: Final = 24
"""The longest that an approval may count."""
NAMESPACE_CONTROLLER = "system:serviceaccount:kube-system:namespace-controller"
GARBAGE_COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
APPROVALS_BY_PEOPLE: Final = "praxis-approvals-by-people"
SIGNERS: Final = "allowedsigners"
KINDS = ("incidents", "incidentapprovals", "incidentreconciliations", "remediationtargets")

ROBOT: Document = {
    "name": "robot",
    "expression": "request.userInfo.username.startsWith('system:') || (has(request.userInfo.groups) && "
    "request.userInfo.groups.exists(g, g in ['system:serviceaccounts', 'system:nodes', 'system:unauthenticated']))",
}
"""Kubernetes keeps the prefix for service accounts, nodes, its own components and the anonymous."""


def documents(names: Names) -> list[Document]:
    """Every policy, each with its binding.

    The API server learns of them in the order in which they are stored, a second or two later: once it refuses an
    approval in another's name, which is the last of them, all are in force.
    """
    policies = [
        status_by_operator(names),
        incidents_by_gateway(names),
        targets_by_admins(names),
        open_intents_stay(),
        held_targets_stay(),
        signers_by_admins(names),
        decisions_stay(names),
        reconciliations_by_people(),
        approvals_by_people(names),
    ]
    return [document for each in policies for document in (each, binding(each["metadata"]["name"]))]


def approvals_by_people(names: Names) -> Document:
    """A person approves as themselves, for a day at most.

    A GitOps controller's account that was opted in may pass on what a person signed: that it is that person's signature
    is the operator's to verify, as CEL cannot.
    """
    return policy(
        APPROVALS_BY_PEOPLE,
        ["incidentapprovals"],
        ["CREATE"],
        variables=[
            ROBOT,
            *passed_on(names.signing_accounts),
            {"name": "now", "expression": "timestamp(object.metadata.creationTimestamp)"},
            {"name": "expires", "expression": "timestamp(object.spec.expiresAt)"},
        ],
        validations=[
            *as_themselves(
                "approver", "only people approve", unless="variables.passedOn" if names.signing_accounts else ""
            ),
            {
                "expression": "variables.expires > variables.now && "
                f"variables.expires <= variables.now + duration('{APPROVAL_HOURS}h')",
                "message": f"spec.expiresAt must lie within {APPROVAL_HOURS} hours from now",
                "reason": "Forbidden",
            },
        ],
    )


def passed_on(accounts: Sequence[str]) -> list[Document]:
    """The variable that says that an opted-in account passes on what a person signed; nothing without such accounts."""
    if not accounts:
        return []
    armour = ARMOUR.replace("\\n", "\\\\n")
    return [
        {
            "name": "passedOn",
            "expression": f"request.userInfo.username in {list(accounts)} && has(object.spec.signature) && "
            f"object.spec.signature.matches('{armour}') && !object.spec.approver.username.startsWith('system:')",
        }
    ]


def signers_by_admins(names: Names) -> Document:
    """Who may sign is for admins to say, never for a robot: a GitOps controller that may write everything could else
    list a key of its own.

    Of people it takes the right to update `allowedsigners` in PRAXIS' API group, which names no resource, in the whole
    cluster: whoever may merely edit the namespace does not have it, nor who is an admin there only.

    The name is a condition, as `resourceNames` does not match the deletion of a collection.
    """
    return policy(
        "praxis-signers-by-admins",
        ["configmaps"],
        ["CREATE", "UPDATE", "DELETE"],
        group="",
        namespace=names.namespace,
        conditions=[
            {
                "name": "the-list",
                "expression": f"(object == null ? oldObject : object).metadata.name == '{SIGNERS_CONFIG_MAP}'",
            }
        ],
        variables=[ROBOT],
        validations=[
            {
                # With its whole namespace the list must be able to go.
                "expression": "(request.operation == 'DELETE' && "
                f"request.userInfo.username == '{NAMESPACE_CONTROLLER}') || (!variables.robot && "
                f"authorizer.group('{GROUP}').resource('{SIGNERS}').check('update').allowed())",
                "messageExpression": f"'{SIGNERS_CONFIG_MAP} is written by people who may update {SIGNERS}.{GROUP} "
                "in the whole cluster, which ' + request.userInfo.username + ' may not'",
                "reason": "Forbidden",
            }
        ],
    )


def decisions_stay(names: Names) -> Document:
    """A robot deletes no decision, nor has it collected: a Reject must not vanish before it is heeded.

    An account that passes on what people signed may prune that: an Approve at any time, which only stops things, and
    any other once the operator gave its verdict, as it counts for nothing more then.
    """
    pruned = (
        f" || (request.userInfo.username in {list(names.signing_accounts)} && has(oldObject.spec.signature) && "
        "(oldObject.spec.decision == 'Approve' || (has(oldObject.status) && has(oldObject.status.verdict))))"
    )
    return policy(
        "praxis-decisions-stay",
        ["incidentapprovals", "incidentreconciliations"],
        ["CREATE", "UPDATE", "DELETE"],
        variables=[ROBOT],
        validations=[
            {
                "expression": "request.operation != 'DELETE' || !variables.robot || request.userInfo.username in "
                f"['{NAMESPACE_CONTROLLER}', '{GARBAGE_COLLECTOR}']{pruned if names.signing_accounts else ''}",
                "messageExpression": "'robots delete no decision; an account that was opted in prunes what people "
                "signed: an Approve, and any other once it has its verdict; ' + request.userInfo.username + "
                "' is a robot'",
                "reason": "Forbidden",
            },
            *neither_kept_nor_collected("a decision"),
        ],
    )


def neither_kept_nor_collected(what: str) -> list[Document]:
    """Robots add neither finalizers nor owner references.

    An owner reference would let Kubernetes' garbage collector delete an object for whoever may not delete it; a
    finalizer would keep it for ever. The controllers of Kubernetes remove finalizers, which stays allowed.
    """
    before = "(oldObject == null ? [] : oldObject.metadata.?{0}.orValue([]))"
    return [
        {
            "expression": f"object == null || !variables.robot || object.metadata.?{field}.orValue([]).all(e, e in "
            f"{before.format(field)})",
            "message": f"robots add no {field} to {what}",
            "reason": "Forbidden",
        }
        for field in ("finalizers", "ownerReferences")
    ]


def reconciliations_by_people() -> Document:
    """A person reconciles as themselves."""
    return policy(
        "praxis-reconciliations-by-people",
        ["incidentreconciliations"],
        ["CREATE"],
        variables=[ROBOT],
        validations=as_themselves("observer", "only people reconcile"),
    )


def status_by_operator(names: Names) -> Document:
    """What is known and decided is written by the operator alone."""
    return policy(
        "praxis-status-by-operator",
        [f"{kind}/status" for kind in KINDS],
        ["UPDATE"],
        validations=[
            {
                "expression": f"request.userInfo.username == '{names.operator}'",
                "messageExpression": "'only the operator writes status; ' + request.userInfo.username + ' does not'",
                "reason": "Forbidden",
            }
        ],
    )


def incidents_by_gateway(names: Names) -> Document:
    """Of all robots only the gateway says what happened; none may have an incident collected or kept."""
    return policy(
        "praxis-incidents-by-gateway",
        ["incidents"],
        ["CREATE", "UPDATE"],
        variables=[ROBOT],
        validations=[
            {
                "expression": f"!variables.robot || request.userInfo.username == '{names.gateway}' || "
                "(request.operation == 'UPDATE' && object.spec == oldObject.spec)",
                "messageExpression": "'of robots only the gateway writes the spec of an Incident; ' + "
                "request.userInfo.username + ' does not'",
                "reason": "Forbidden",
            },
            *neither_kept_nor_collected("an Incident"),
        ],
    )


def targets_by_admins(names: Names) -> Document:
    """What may be acted on is declared by admins, never by what acts or by what listens to alerts."""
    return policy(
        "praxis-targets-by-admins",
        ["remediationtargets"],
        ["CREATE", "UPDATE"],
        validations=[
            {
                "expression": f"!(request.userInfo.username in ['{names.operator}', '{names.gateway}'])",
                "messageExpression": "'targets are declared by admins, not by ' + request.userInfo.username",
                "reason": "Forbidden",
            }
        ],
    )


def open_intents_stay() -> Document:
    """An incident whose request may be under way cannot be deleted, by nobody: its record is all that is known."""
    return policy(
        "praxis-open-intents-stay",
        ["incidents"],
        ["DELETE"],
        validations=[
            {
                "expression": "!has(oldObject.status) || !has(oldObject.status.steps) || "
                "oldObject.status.steps.all(s, !has(s.intent) || has(s.outcome))",
                "message": "an intent is open: its outcome is not known yet; delete the incident once it is",
                "reason": "Forbidden",
            }
        ],
    )


def held_targets_stay() -> Document:
    """A held target cannot be deleted, except with its whole namespace."""
    return policy(
        "praxis-held-targets-stay",
        ["remediationtargets"],
        ["DELETE"],
        validations=[
            {
                "expression": f"request.userInfo.username == '{NAMESPACE_CONTROLLER}' || "
                "!has(oldObject.status) || !has(oldObject.status.holder)",
                "messageExpression": "'held by incident ' + oldObject.status.holder.incidentName + "
                "'; delete the target once that is over, or reconciled'",
                "reason": "Forbidden",
            }
        ],
    )


def as_themselves(field: str, rule: str, *, unless: str = "") -> list[Document]:
    """The requester is a person, and names nobody else."""
    or_else = f" || {unless}" if unless else ""
    return [
        {
            "expression": f"!variables.robot{or_else}",
            "messageExpression": f"'{rule}; ' + request.userInfo.username + ' is not a person'",
            "reason": "Forbidden",
        },
        {
            "expression": f"object.spec.{field}.username == request.userInfo.username{or_else}",
            "messageExpression": f"'spec.{field}.username must be you: ' + request.userInfo.username",
            "reason": "Forbidden",
        },
    ]


def policy(
    name: str,
    resources: Sequence[str],
    operations: Sequence[str],
    *,
    validations: Sequence[Document],
    variables: Sequence[Document] = (),
    group: str = GROUP,
    conditions: Sequence[Document] = (),
    namespace: str | None = None,
) -> Document:
    """A policy that fails closed, on every version of the resources; everywhere, or in one namespace."""
    spec: Document = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}} if namespace else {},
            "objectSelector": {},
            "resourceRules": [
                {
                    "apiGroups": [group],
                    "apiVersions": ["*"],
                    "operations": list(operations),
                    "resources": list(resources),
                    "scope": "*",
                }
            ],
        },
    }
    if conditions:
        spec["matchConditions"] = [dict(condition) for condition in conditions]
    if variables:
        spec["variables"] = [dict(variable) for variable in variables]
    spec["validations"] = list(validations)
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "labels": dict(LABELS)},
        "spec": spec,
    }


def binding(name: str) -> Document:
    """The binding that puts a policy into force."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name, "labels": dict(LABELS)},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
