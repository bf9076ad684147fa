"""What counts as too much, judged from rules: an independent reading of RBAC agrees, for any rules."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praxis.api.accounts import Names
from praxis.api.powers import DANGERS, EVERYBODY, QUESTIONS, Allowed, Excess, Power, Rule, excesses

PRAXIS = "praxis.kopachelli.dev"
NAMES = Names()
OPERATOR = Allowed.to(NAMES, NAMES.operator_account)
GATEWAY = Allowed.to(NAMES, NAMES.gateway_account)
HOME = OPERATOR.at(NAMES.namespace)

VERBS = ("*", "get", "list", "watch", "create", "patch", "update", "delete", "impersonate", "use")
GROUPS = ("*", "", "apps", PRAXIS, "coordination.k8s.io", "rbac.authorization.k8s.io")
RESOURCES = (
    "*", "*/status", "*/exec", "pods", "pods/exec", "secrets", "users", "incidents", "incidents/status",
    "incidentapprovals", "incidentapprovals/status", "leases", "clusterroles", "serviceaccounts/token",
)  # fmt: skip
LEASES = ("praxis-operator", "another")
URLS = ("*", "/healthz", "/praxis/*")
URL_VERBS = ("*", "get", "post", "delete")


def subset(values: tuple[str, ...], least: int = 1) -> st.SearchStrategy[tuple[str, ...]]:
    """Some of the values, each once."""
    return st.lists(st.sampled_from(values), min_size=least, max_size=3, unique=True).map(tuple)


RULES = st.lists(
    st.one_of(
        st.builds(
            Rule, verbs=subset(VERBS), groups=subset(GROUPS), resources=subset(RESOURCES), names=subset(LEASES, 0)
        ),
        st.builds(Rule, verbs=subset(URL_VERBS), urls=subset(URLS)),
    ),
    max_size=4,
)
CONCRETE = [
    (verb, group, resource, name)
    for verb, group, resource, name in itertools.product(VERBS, GROUPS, RESOURCES, LEASES)
    if "*" not in verb + group + resource
]


def authorised(rules: list[Rule] | tuple[Rule, ...], verb: str, group: str, resource: str, name: str) -> bool:
    """RBAC's own rule matching, read off pkg/apis/rbac/v1/evaluation_helpers.go."""
    _, _, subresource = resource.partition("/")
    resources = {"*", resource, *([f"*/{subresource}"] if subresource else [])}
    return any(
        {verb, "*"} & set(rule.verbs)
        and {group, "*"} & set(rule.groups)
        and resources & set(rule.resources)
        and (not rule.names or name in rule.names)
        for rule in rules
    )


def harmless(verb: str, group: str, resource: str) -> bool:
    """Reading, but for Secrets and for what connects; literal, as a second opinion."""
    sensitive = (group, resource) == ("", "secrets") or (verb, group, resource) == ("get", "", "pods/exec")
    return verb in {"get", "list", "watch"} and not sensitive


@given(RULES)
def test_nothing_harmful_passes(rules: list[Rule]) -> None:
    """When any request that is no harmless reading is authorised beyond the own list, some rule is found."""
    found = excesses(rules, HOME)
    beyond = [
        request
        for request in CONCRETE
        if authorised(rules, *request) and not authorised(HOME, *request) and not harmless(*request[:3])
    ]
    assert found or not beyond
    for request in beyond:
        verb, group, resource, name = request
        power = Power(verb, group, resource, name)
        assert any(each.rule is not None and each.rule.grants(power) for each in found), power


@given(st.sampled_from(HOME), st.data())
def test_any_part_of_the_own_list_passes(rule: Rule, data: st.DataObject) -> None:
    """Less than what PRAXIS grants is never too much, and the reasons never depend on the order of rules."""
    part = replace(
        rule,
        verbs=data.draw(subset(rule.verbs)),
        groups=data.draw(subset(rule.groups)),
        resources=data.draw(subset(rule.resources)),
        names=data.draw(subset(rule.names)) if rule.names else data.draw(subset(LEASES, 0)),
    )
    assert excesses([part], HOME) == []


@given(RULES)
def test_urls(rules: list[Rule]) -> None:
    """A rule on URLs is too much exactly when it has another verb than reading ones."""
    urls = [rule for rule in rules if rule.urls]
    expected = [rule for rule in dict.fromkeys(urls) if set(rule.verbs) - {"get"}]
    assert [each.rule for each in excesses(urls, HOME)] == expected


@given(RULES, st.randoms(use_true_random=False))
def test_each_rule_is_judged_alone(rules: list[Rule], random: object) -> None:
    """Neither order nor repetition of rules changes what is found."""
    mixed = [*rules, *rules]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert set(excesses(mixed, HOME)) == set(excesses(rules, HOME))


def test_the_own_list_is_that_of_the_roles() -> None:
    """What an account may write is derived from the rendered roles, the Role in its own namespace only."""
    lease = Rule(("get", "patch", "update"), ("coordination.k8s.io",), ("leases",), ("praxis-operator",))
    assert lease in HOME
    assert lease not in OPERATOR.at("shop")
    assert GATEWAY.at("shop") == (*EVERYBODY, Rule(("create", "get", "list", "patch"), (PRAXIS,), ("incidents",)))
    assert not any("*" in text for rule in HOME for text in (*rule.verbs, *rule.groups, *rule.resources))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule(("create", "get"), (PRAXIS,), ("incidents", "incidentapprovals")), ["incidents", "incidentapprovals"]),
        (Rule(("patch",), (PRAXIS,), ("incidents/status", "incidents")), ["incidents"]),
        (Rule(("get", "list"), ("",), ("secrets", "configmaps")), ["secrets", "secrets"]),
        (Rule(("list",), ("apps",), ("*",)), []),
        (Rule(("list",), ("",), ("*",)), ["*"]),
        (Rule(("get",), ("*",), ("secrets",)), ["secrets"]),
        (Rule(("get",), ("other.example",), ("secrets",)), []),
        (Rule(("list",), ("",), ("pods/exec",)), []),
        (Rule(("patch",), ("coordination.k8s.io",), ("leases",), ("praxis-operator",)), []),
        (Rule(("patch",), ("coordination.k8s.io",), ("leases",), ("praxis-operator", "another")), ["leases"]),
        (Rule(("patch",), ("coordination.k8s.io",), ("leases",)), ["leases"]),
    ],
    ids=str,
)
def test_what_exactly_is_too_much(rule: Rule, expected: list[str]) -> None:
    """Only the powers beyond the list are named, each wildcard as it is written."""
    assert [power.resource for each in excesses([rule], HOME) for power in each.powers] == expected


def test_the_lease_counts_at_home_only() -> None:
    """The same rule is on the list in the installation's namespace and too much elsewhere."""
    lease = Rule(("create",), ("coordination.k8s.io",), ("leases",))
    assert excesses([lease], HOME) == []
    assert excesses([lease], OPERATOR.at("shop")) == [
        Excess((Power("create", "coordination.k8s.io", "leases"),), lease)
    ]


def test_a_sentence() -> None:
    """It says what, where, why, what to remove and who granted it; more than four powers are counted."""
    rule = Rule(("create", "update", "patch"), (PRAXIS,), ("incidentapprovals", "incidentreconciliations"))
    (excess,) = excesses([rule], HOME)
    assert excess.sentence("in shop", 'RBAC: allowed by RoleBinding "x"') == (
        "may create incidentapprovals.praxis.kopachelli.dev, create incidentreconciliations.praxis.kopachelli.dev, "
        "update incidentapprovals.praxis.kopachelli.dev, update incidentreconciliations.praxis.kopachelli.dev "
        "and 2 more in shop, but deciding is for people: "
        'remove the rule {"apiGroups": ["praxis.kopachelli.dev"], "resources": '
        '["incidentapprovals", "incidentreconciliations"], "verbs": ["create", "update", "patch"]} '
        '(RBAC: allowed by RoleBinding "x")'
    )


def test_every_reason_is_told_once() -> None:
    """A wildcard gives every danger at once; none of the reasons is left out or repeated."""
    (excess,) = excesses([Rule(("*",), ("*",), ("*",))], HOME)
    assert excess.why == list(dict.fromkeys(danger.why for danger in DANGERS))
    (url,) = excesses([Rule(("*",), urls=("*",))], HOME)
    assert url.why == ["it is not on PRAXIS' own list"]


def test_each_question_is_about_something_too_much() -> None:
    """No danger that is asked for is on the list of the operator or the gateway: a yes is always too much."""
    assert len(QUESTIONS) == len(set(QUESTIONS))
    for power, allowed in itertools.product(QUESTIONS, (HOME, GATEWAY.at("shop"))):
        assert not authorised(allowed, power.verb, power.group, power.resource, "any")
        assert excesses([Rule((power.verb,), (power.group,), (power.resource,))], allowed)


@pytest.mark.parametrize(
    ("power", "expected"),
    [
        (Power("get", "", "pods/exec"), {"verb": "get", "resource": "pods", "subresource": "exec"}),
        (
            Power("patch", "apps", "deployments", "web"),
            {"verb": "patch", "group": "apps", "resource": "deployments", "name": "web"},
        ),
        (Power("post", url="/praxis"), {"verb": "post", "path": "/praxis"}),
    ],
    ids=str,
)
def test_how_a_power_is_asked_for(power: Power, expected: dict[str, str]) -> None:
    """As the attributes of an access review, the subresource apart."""
    assert power.attributes == expected
