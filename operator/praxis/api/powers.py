"""What an identity may do beyond what PRAXIS grants it, judged from rules that the API server lists. Pure: no I/O.

What is allowed is taken from the rendered roles, so that there is one list. Reading is harmless but for Secrets and the
subresources that connect; any other verb, an unknown one too, is a write and must be on the list.

How rules match is Kubernetes' RBAC: `*` stands for every verb, group or resource, `*/sub` for that subresource of every
resource; an empty `resourceNames` means every name.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from praxis.api import rbac
from praxis.api.accounts import Names
from praxis.api.base import GROUP

Document = Mapping[str, Any]

ANY = "*"
READ = frozenset({"get", "list", "watch"})
READ_URL = frozenset({"get", "head", "options"})
WRITES = ("create", "update", "patch", "delete", "deletecollection")
SHOWN_POWERS = 4
"""Powers that one sentence names; the rule that follows shows all of them."""


@dataclass(frozen=True)
class Power:
    """One verb on one resource, with its subresource, or on one URL. An empty name means every name."""

    verb: str
    group: str = ""
    resource: str = ""
    name: str = ""
    url: str = ""

    def __str__(self) -> str:
        if self.url:
            return f"{self.verb} {self.url}"
        group = f".{self.group}" if self.group else ""
        return f"{self.verb} {self.resource}{group}" + (f" named {self.name}" if self.name else "")

    @property
    def attributes(self) -> dict[str, str]:
        """As an access review asks for it, without a namespace."""
        if self.url:
            return {"verb": self.verb, "path": self.url}
        resource, _, subresource = self.resource.partition("/")
        asked = {
            "verb": self.verb,
            "group": self.group,
            "resource": resource,
            "subresource": subresource,
            "name": self.name,
        }
        return {key: value for key, value in asked.items() if value}


@dataclass(frozen=True)
class Rule:
    """A rule of a role, or as a rules review lists it."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @classmethod
    def parse(cls, document: Document) -> Self:
        """From a PolicyRule, a ResourceRule or a NonResourceRule; an absent list is empty."""
        fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return cls(*(tuple(document.get(field) or ()) for field in fields))

    def __str__(self) -> str:
        fields = {
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
            "verbs": self.verbs,
        }
        return json.dumps({key: list(value) for key, value in fields.items() if value})

    @property
    def powers(self) -> list[Power]:
        """Each verb on each resource, name and URL, wildcards as they are written."""
        objects = itertools.product(self.verbs, self.groups, self.resources, self.names or ("",))
        return [
            *(Power(verb, group, resource, name) for verb, group, resource, name in objects),
            *(Power(verb, url=url) for verb, url in itertools.product(self.verbs, self.urls)),
        ]

    def covers(self, power: Power) -> bool:
        """Whether a power is literally on this rule; a wildcard is covered by the same wildcard only."""
        if power.verb not in self.verbs:
            return False
        if power.url:
            return power.url in self.urls
        named = not self.names or power.name in self.names
        return power.group in self.groups and power.resource in self.resources and named

    def grants(self, power: Power) -> bool:
        """Whether RBAC would allow it by this rule, for some name at least."""
        return any(_overlap(granted, power) for granted in self.powers)


@dataclass(frozen=True)
class Danger:
    """Powers by which PRAXIS' own guards could be gone round, and why nobody who runs PRAXIS may have them."""

    why: str
    verbs: tuple[str, ...]
    group: str
    resources: tuple[str, ...]

    @property
    def powers(self) -> list[Power]:
        """Each of them, to be asked for."""
        return [Power(verb, self.group, resource) for verb, resource in itertools.product(self.verbs, self.resources)]


IMPERSONATE = ("impersonate", "impersonate:user-info", "impersonate:serviceaccount")
"""The plain verb, and those of constrained impersonation (KEP-5284)."""
AUTHENTICATION = "authentication.k8s.io"
ADMISSION = "admissionregistration.k8s.io"
IMPERSONATES = "whoever impersonates a person may approve as them"
GRANTS = "it could grant itself anything"
CONNECTS = "it could act inside workloads or as what runs them"
DANGERS = (
    Danger("deciding is for people", WRITES, GROUP, ("incidentapprovals", "incidentreconciliations")),
    Danger(IMPERSONATES, IMPERSONATE, "", ("users", "groups", "serviceaccounts")),
    Danger(IMPERSONATES, IMPERSONATE, AUTHENTICATION, ("users", "groups", "serviceaccounts", "uids", "userextras")),
    Danger(GRANTS, ("escalate", "bind", *WRITES), rbac.RBAC, ("roles", "clusterroles")),
    Danger(GRANTS, WRITES, rbac.RBAC, ("rolebindings", "clusterrolebindings")),
    Danger("it could become another service account", ("create",), "", ("serviceaccounts/token",)),
    Danger(
        "the rules that hold the machine are there",
        WRITES,
        "apiextensions.k8s.io",
        ("customresourcedefinitions", "customresourcedefinitions/status"),
    ),
    Danger(
        "the policies that hold approvals are there",
        WRITES,
        ADMISSION,
        (
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
            "mutatingwebhookconfigurations",
        ),
    ),
    Danger("Secrets are never read", ("get", "list", "watch"), "", ("secrets",)),
    # A connection that is upgraded from a GET was authorised as `get` for years, and some servers still do so.
    Danger(
        CONNECTS,
        ("get", "create"),
        "",
        ("pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "services/proxy", "nodes/proxy"),
    ),
)
QUESTIONS = tuple(dict.fromkeys(power for danger in DANGERS for power in danger.powers))
"""Every danger, one by one: asked for where a list of rules cannot be relied on."""

EVERYBODY = (
    Rule(("create",), ("authorization.k8s.io",), ("selfsubjectaccessreviews", "selfsubjectrulesreviews")),
    Rule(("create",), (AUTHENTICATION,), ("selfsubjectreviews",)),
)
"""What Kubernetes gives to every authenticated identity (`system:basic-user`); it stores nothing."""


@dataclass(frozen=True)
class Allowed:
    """What an account of the installation may write: everywhere, and more of it in one namespace."""

    everywhere: tuple[Rule, ...]
    within: Mapping[str, tuple[Rule, ...]]

    @classmethod
    def to(cls, names: Names, account: str) -> Self:
        """The rules that the rendered bindings give to one of the installation's two service accounts."""
        documents = rbac.documents(names)
        subject = {"kind": "ServiceAccount", "name": account, "namespace": names.namespace}
        everywhere, within = list(EVERYBODY), dict[str, tuple[Rule, ...]]()
        for binding in documents:
            if subject not in binding.get("subjects", ()):
                continue
            rules = _rules_of(documents, binding)
            namespace = binding["metadata"].get("namespace")
            if namespace is None:
                everywhere += rules
            else:
                within[namespace] = (*within.get(namespace, ()), *rules)
        return cls(tuple(everywhere), within)

    def at(self, namespace: str) -> tuple[Rule, ...]:
        """What is allowed in a namespace."""
        return (*self.everywhere, *self.within.get(namespace, ()))


@dataclass(frozen=True)
class Excess:
    """A rule that gives more than is allowed, and what it gives; without a rule, a power that no list showed."""

    powers: tuple[Power, ...]
    rule: Rule | None = None

    @property
    def why(self) -> list[str]:
        """Why these powers are refused, each reason once."""
        reasons = dict.fromkeys(danger.why for danger in DANGERS if any(_is(power, danger) for power in self.powers))
        return list(reasons) or ["it is not on PRAXIS' own list"]

    def sentence(self, where: str, origin: str) -> str:
        """What a person must take away, and from where; `origin` is the API server's own word for who granted it."""
        more = len(self.powers) - SHOWN_POWERS
        named = ", ".join(str(power) for power in self.powers[:SHOWN_POWERS]) + (
            f" and {more} more" if more > 0 else ""
        )
        granted = f" ({origin})" if origin else ""
        rule = f"the rule {self.rule}" if self.rule else "what grants it"
        return f"may {named} {where}, but {', and '.join(self.why)}: remove {rule}{granted}"


def excesses(granted: Iterable[Rule], allowed: Sequence[Rule]) -> list[Excess]:
    """Every granted rule that gives more than reading, or reads what is never read, and is not covered by `allowed`."""
    found = []
    for rule in dict.fromkeys(granted):
        beyond = tuple(power for power in rule.powers if _matters(power) and not any(a.covers(power) for a in allowed))
        if beyond:
            found.append(Excess(beyond, rule))
    return found


def _rules_of(documents: Sequence[Document], binding: Document) -> list[Rule]:
    wanted = (binding["roleRef"]["kind"], binding["roleRef"]["name"], binding["metadata"].get("namespace"))
    return [
        Rule.parse(rule)
        for each in documents
        if (each["kind"], each["metadata"]["name"], each["metadata"].get("namespace")) == wanted
        for rule in each["rules"]
    ]


def _matters(power: Power) -> bool:
    if power.url:
        return power.verb not in READ_URL
    return power.verb not in READ or any(_is(power, danger) for danger in DANGERS)


def _is(power: Power, danger: Danger) -> bool:
    return any(_overlap(power, each) for each in danger.powers)


def _overlap(granted: Power, asked: Power) -> bool:
    """Whether a power as a rule writes it, wildcards and all, includes one that is asked for."""
    if granted.url or asked.url:
        both = bool(granted.url and asked.url)
        return both and granted.verb in {ANY, asked.verb} and _url_matches(granted.url, asked.url)
    return (
        granted.verb in {ANY, asked.verb}
        and granted.group in {ANY, asked.group}
        and _resource_matches(granted.resource, asked.resource)
        and (not granted.name or not asked.name or granted.name == asked.name)
    )


def _resource_matches(pattern: str, resource: str) -> bool:
    _, slash, subresource = resource.partition("/")
    return pattern in {ANY, resource} or (bool(slash) and pattern == f"{ANY}/{subresource}")


def _url_matches(pattern: str, url: str) -> bool:
    return pattern == url or (pattern.endswith(ANY) and url.startswith(pattern.rstrip(ANY)))
