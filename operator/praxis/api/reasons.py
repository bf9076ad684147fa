"""Every reason, once: the same word stands in conditions, Events, trail entries, verdicts and metric labels."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why something is as it is; each names the fact or the fault."""

    # what an incident went through
    CLASSIFIED = "Classified"
    DIAGNOSED = "Diagnosed"
    PLAN_PROPOSED = "PlanProposed"
    APPROVED = "Approved"
    REJECTED = "Rejected"
    REVISION_REQUESTED = "RevisionRequested"
    ACTIONS_DONE = "ActionsDone"
    ALERT_CLEARED = "AlertCleared"
    NOT_EFFECTIVE = "NotEffective"

    # why an incident is closed
    SELF_RESOLVED = "SelfResolved"
    DISMISSED = "Dismissed"
    APPROVAL_EXPIRED = "ApprovalExpired"
    DRY_RUN_ONLY = "DryRunOnly"

    # why an incident failed
    ATTEMPTS_EXHAUSTED = "AttemptsExhausted"
    PLANS_EXHAUSTED = "PlansExhausted"
    NO_TARGET = "NoTarget"

    # what the gate found
    PLAN_DRIFTED = "PlanDrifted"
    POLICIES_CHANGED = "PoliciesChanged"
    TARGET_HELD = "TargetHeld"
    TARGET_NOT_DISPOSABLE = "TargetNotDisposable"
    TARGET_SHARED = "TargetShared"
    APPROVAL_WITHDRAWN = "ApprovalWithdrawn"
    QUORUM_NOT_MET = "QuorumNotMet"

    # actions
    INTENT_RECORDED = "IntentRecorded"
    DRY_RUN = "DryRun"
    RESTARTED = "Restarted"
    DRAINED = "Drained"
    NEVER_SENT = "NeverSent"
    BASELINE_CHANGED = "BaselineChanged"
    NOTHING_RUNNING = "NothingRunning"
    FUNCTION_NOT_FOUND = "FunctionNotFound"
    NOT_VERIFIABLE = "NotVerifiable"
    REJECTED_BY_SERVICE = "RejectedByService"
    NOT_PROVEN = "NotProven"
    WRITER_LOST = "WriterLost"
    NOT_APPLIED = "NotApplied"
    OUTCOME_UNKNOWN = "OutcomeUnknown"

    # verdicts on approvals and reconciliations
    ACCEPTED = "Accepted"
    PENDING = "Pending"
    INCIDENT_NOT_FOUND = "IncidentNotFound"
    PLAN_SUPERSEDED = "PlanSuperseded"
    NOT_AWAITING_APPROVAL = "NotAwaitingApproval"
    EXPIRED = "Expired"
    ALREADY_DECIDED = "AlreadyDecided"
    DUPLICATE_APPROVER = "DuplicateApprover"
    OVERRULED = "Overruled"
    SIGNATURE_NOT_VERIFIED = "SignatureNotVerified"
    APPROVER_NOT_A_PERSON = "ApproverNotAPerson"
    INTENT_MISMATCH = "IntentMismatch"
    RECONCILED = "Reconciled"

    # why work does not go on
    UNAVAILABLE = "Unavailable"
    ACTION_REQUIRED = "ActionRequired"
    INSTALLATION_DIFFERS = "InstallationDiffers"
    INVALID_ANSWER = "InvalidAnswer"
    BUDGET_SPENT = "BudgetSpent"
    DEADLINE_PASSED = "DeadlinePassed"
    WRITE_REFUSED = "WriteRefused"
    STATUS_TOO_LARGE = "StatusTooLarge"
    UNEXPECTED_ERROR = "UnexpectedError"
    VERIFYING = "Verifying"
    PROGRESSING = "Progressing"

    # memory
    STORED = "Stored"
    OWED = "Owed"


class ConditionType(StrEnum):
    """The types of conditions that an Incident, an approval or a reconciliation can carry."""

    STALLED = "Stalled"
    """On an Incident, only while true: work does not go on, the message says what to do."""
    APPROVED = "Approved"
    """On an Incident: how many of the approvals needed are there."""
    MEMORY_STORED = "MemoryStored"
    """On a resolved Incident: whether its memory is written."""
    RECONCILED = "Reconciled"
    """On an Incident in ReconciliationRequired: whether a person has said what happened."""
    ACCEPTED = "Accepted"
    """On an approval or a reconciliation: the verdict."""
