"""Episodes on the real API server, written by the gateway's own service account."""

from __future__ import annotations

import asyncio
import json

import pytest
from prometheus_client import CollectorRegistry

from praxis.api.incident import Incident
from praxis.clock import SystemClock
from praxis.errors import Refused, RetryLater
from praxis.intake.ledger import Ledger
from praxis.intake.metrics import Metrics
from praxis.kube import Kube, path_of
from tests.intake.conftest import Site
from tests.intake.notifications import BEGAN, EARLIER, ENDED, GROUP_KEY, LATER, alert, many, notification, payload
from tests.proxy import answer, drop_after, drop_before, first

pytestmark = pytest.mark.controlplane

TO_OBSERVING = ("Triaged", "Investigated", "AwaitingApproval", "Executing", "Observing")
TO_RECONCILIATION = (*TO_OBSERVING[:-1], "ReconciliationRequired")
RESOLVED = alert("f1", "resolved")


def statuses(incident: Incident) -> dict[str, str]:
    """Status by fingerprint."""
    return {each.fingerprint: each.status for each in incident.spec.alerts}


async def test_first_notification(site: Site) -> None:
    """A new group becomes an Incident in the configured namespace, and the answer names it."""
    status, told = await site.post(payload(alert("f1", labels={"alertname": "A", "namespace": "kube-system"})))
    (incident,) = await site.incidents()
    assert status == 202
    assert told == {
        "incident": f"{site.namespace}/{incident.metadata.name}",
        "outcome": "created",
        "reason": "FirstEpisode",
        "message": "a new Incident",
    }
    assert incident.metadata.name.startswith("alertmanager-")
    assert incident.metadata.name.endswith("-1")
    assert incident.metadata.labels["praxis.kopachelli.dev/receiver"] == "alertmanager"
    assert incident.spec.source.group_key == GROUP_KEY
    assert (incident.spec.source.episode, incident.spec.source.previous) == (1, None)
    assert incident.status.phase == "New"


async def test_repetition_writes_nothing(site: Site) -> None:
    """What the Incident knows already is answered 200 without a write."""
    name = await site.fired()
    before = await site.incident(name)
    status, told = await site.post(payload())
    assert (status, told["outcome"], told["reason"]) == (200, "merged", "Unchanged")
    assert (await site.incident(name)).metadata.resource_version == before.metadata.resource_version
    assert site.proxy.count("PATCH") == 0


async def test_joining_and_resolving(site: Site) -> None:
    """A joining alert is added and a resolving one flipped, while the operator works on the Incident."""
    name = await site.fired(alert("f1"))
    await site.lead(name, "Triaged")
    status, told = await site.post(payload(alert("f1", "resolved"), alert("f2")))
    assert (status, told["outcome"], told["reason"]) == (200, "merged", "Changed")
    incident = await site.incident(name)
    assert statuses(incident) == {"f1": "resolved", "f2": "firing"}
    assert incident.spec.alerts[0].ends_at == ENDED
    assert incident.status.phase == "Triaged"


async def test_older_start_changes_nothing(site: Site) -> None:
    """A late report of an alert's earlier life is merged into nothing."""
    name = await site.fired(alert("f1", began=LATER))
    status, told = await site.post(payload(alert("f1", began=BEGAN)))
    assert (status, told["reason"]) == (200, "Unchanged")
    assert (await site.incident(name)).spec.alerts[0].starts_at == LATER


async def test_resolve_of_an_unknown_group(site: Site) -> None:
    """A resolve that nobody waits for is accounted, and creates nothing."""
    status, told = await site.post(payload(RESOLVED))
    assert (status, told["outcome"], told["incident"]) == (200, "suppressed", None)
    assert await site.incidents() == []
    assert await site.outcomes() == {"suppressed NothingFires": 1}


async def test_whole_life_and_the_next_episode(site: Site) -> None:
    """Fired, remediated, cleared, resolved; what fires then is the next episode, linked to the one before."""
    name = await site.fired()
    await site.lead(name, *TO_OBSERVING)
    assert (await site.post(payload(RESOLVED)))[1]["reason"] == "Changed"
    await site.lead(name, "Resolved", reason="AlertCleared")
    assert (await site.post(payload(RESOLVED)))[1] == {
        "incident": f"{site.namespace}/{name}",
        "outcome": "suppressed",
        "reason": "EpisodeEnded",
        "message": "nothing fires that the ended Incident of this group does not know",
    }
    assert (await site.post(payload(alert("f1", began=EARLIER))))[1]["outcome"] == "suppressed"
    status, told = await site.post(payload(alert("f1", began=LATER)))
    assert (status, told["outcome"], told["reason"]) == (202, "created", "NextEpisode")
    ended, current = await site.incidents()
    assert current.metadata.name == name[:-1] + "2"
    assert (current.spec.source.episode, current.spec.source.previous) == (2, name)
    assert statuses(ended) == {"f1": "resolved"}
    assert (await site.post(payload(alert("f1", began=LATER))))[1]["incident"].endswith("-2")
    assert await site.outcomes() == {
        "created FirstEpisode": 1,
        "created NextEpisode": 1,
        "merged Changed": 1,
        "merged Unchanged": 1,
        "suppressed EpisodeEnded": 2,
    }


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        (("Closed",), "ApprovalExpired"),
        (("Triaged", "Investigated", "AwaitingApproval", "Executing", "Closed"), "DryRunOnly"),
        (("Failed",), "AttemptsExhausted"),
    ],
)
async def test_lapsed(site: Site, way: tuple[str, ...], reason: str) -> None:
    """Nothing unanswered goes quiet: after an end that answered nothing the next repetition opens an episode."""
    name = await site.fired(alert("f1"), alert("f2"))
    await site.lead(name, *way, reason=reason)
    assert (await site.post(payload(RESOLVED)))[1]["reason"] == "Changed"
    assert statuses(await site.incident(name)) == {"f1": "resolved", "f2": "firing"}
    assert await site.fired(alert("f2")) == name[:-1] + "2"
    assert statuses(await site.incident(name)) == {"f1": "resolved", "f2": "firing"}


async def test_dismissed(site: Site) -> None:
    """A dismissed alert that keeps firing stays dismissed; one that begins again is another matter."""
    name = await site.fired(alert("f1"), alert("f2"))
    await site.lead(name, "Closed", reason="Dismissed")
    assert (await site.post(payload(alert("f1"), alert("f2"))))[1]["reason"] == "Unchanged"
    assert (await site.post(payload(RESOLVED)))[1]["reason"] == "Changed"
    assert await site.fired(alert("f1", began=LATER), alert("f2")) == name[:-1] + "2"


async def test_reconciliation(site: Site) -> None:
    """An incident that waits to be reconciled keeps its alerts; once it is, the next repetition opens an episode."""
    name = await site.fired(alert("f1"), alert("f2"))
    await site.lead(name, *TO_RECONCILIATION, reason="OutcomeUnknown")
    assert (await site.post(payload(alert("f1"), alert("f2"))))[1]["reason"] == "Unchanged"
    assert (await site.post(payload(RESOLVED)))[1]["reason"] == "Changed"
    stored = (await site.admin.get(path_of(Incident, site.namespace, name))).document
    reconciled = {"type": "Reconciled", "status": "True", "reason": "Reconciled", "lastTransitionTime": BEGAN}
    await site.lab.put(stored, "Reconciled", conditions=[*stored["status"].get("conditions", []), reconciled])
    assert await site.fired(alert("f2")) == name[:-1] + "2"


async def test_truncated_alerts(site: Site) -> None:
    """Beyond 64 alerts only their number is kept, and it keeps the incident from counting as cleared."""
    name = await site.fired(*many(70), truncatedAlerts=5)
    incident = await site.incident(name)
    assert (len(incident.spec.alerts), incident.spec.truncated_alerts) == (64, 11)
    assert (await site.post(payload(*many(70), truncatedAlerts=5)))[1]["reason"] == "Unchanged"
    await site.post(payload(*many(64, "resolved")))
    assert (await site.incident(name)).spec.truncated_alerts == 11


async def test_largest_incident_fits(site: Site) -> None:
    """64 alerts as large as an alert may be, told in as many notifications, are stored."""
    text = {f"a{number}": "<&>汉" * 512 for number in range(32)}
    for number in range(64):
        status, told = await site.post(payload(alert(f"f{number}", annotations=text)))
        assert status in {200, 202}, told
    (incident,) = await site.incidents()
    assert len(incident.spec.alerts) == 64
    assert min(len(each.annotations) for each in incident.spec.alerts) >= 1


async def test_groups_are_apart(site: Site) -> None:
    """Another group key, and the same one at the other address, are other Incidents."""
    await site.fired()
    await site.fired(key="{}:{}")
    status, told = await site.sign_and_post(payload())
    assert (status, told["outcome"]) == (202, "created")
    incidents = await site.incidents()
    assert [each.spec.source.authentication for each in incidents] == ["bearer", "bearer", "hmac"]
    assert incidents[-1].metadata.name.startswith("webhook-")


async def test_episode_numbers_do_not_start_again(site: Site) -> None:
    """When the first episode was deleted, the newest is still found."""
    name = await site.fired()
    await site.lead(name, "Failed", reason="NoTarget")
    second = await site.fired()
    await site.admin.delete(path_of(Incident, site.namespace, name))
    assert (await site.post(payload()))[1]["incident"] == f"{site.namespace}/{second}"
    assert [each.metadata.name for each in await site.incidents()] == [second]


async def test_without_labels(site: Site) -> None:
    """An episode whose labels somebody removed is found by its name when it would be opened a second time."""
    name = await site.fired()
    await site.admin.merge_patch(path_of(Incident, site.namespace, name), {"metadata": {"labels": None}})
    status, told = await site.post(payload(alert("f1"), alert("f2")))
    assert (status, told["incident"]) == (200, f"{site.namespace}/{name}")
    assert statuses(await site.incident(name)) == {"f1": "firing", "f2": "firing"}


async def test_two_gateways_and_the_same_notification(idle: Site) -> None:
    """Of many deliveries to two replicas at the same time exactly one creates the Incident."""
    urls = [await idle.start(), await idle.start()]
    answers = await asyncio.gather(*(idle.post(payload(), url=url) for _ in range(8) for url in urls))
    assert sorted(status for status, _ in answers) == [200] * 15 + [202]
    assert len({told["incident"] for _, told in answers}) == 1
    assert len(await idle.incidents()) == 1
    created = [(await idle.outcomes(url)).get("created FirstEpisode", 0) for url in urls]
    assert sum(created) == 1


async def test_two_gateways_and_different_alerts(idle: Site) -> None:
    """Nothing is lost when replicas merge into one Incident at the same time."""
    urls = [await idle.start(), await idle.start()]
    answers = await asyncio.gather(
        *(idle.post(payload(alert(f"f{number}")), url=urls[number % 2]) for number in range(20))
    )
    assert {status for status, _ in answers} == {200, 202}
    (incident,) = await idle.incidents()
    assert statuses(incident) == {f"f{number}": "firing" for number in range(20)}


async def test_two_gateways_and_the_next_episode(idle: Site) -> None:
    """One next episode is opened, by whichever replica comes first."""
    urls = [await idle.start(), await idle.start()]
    name = await idle.fired()
    await idle.lead(name, "Failed", reason="NoTarget")
    answers = await asyncio.gather(*(idle.post(payload(), url=url) for _ in range(4) for url in urls))
    assert sorted(status for status, _ in answers) == [200] * 7 + [202]
    assert [each.metadata.name for each in await idle.incidents()] == [name, name[:-1] + "2"]


async def test_episode_that_ends_between_reading_and_merging(site: Site) -> None:
    """A merge that was judged on an open incident does not reach the ended one: it is judged again."""
    name = await site.fired()
    site.proxy.spoil(first(lambda: site.lead(name, "Closed", reason="Dismissed")), path=name)
    assert await site.fired(alert("f1", began=LATER)) == name[:-1] + "2"
    assert (await site.incident(name)).spec.alerts[0].starts_at == BEGAN
    assert (await site.metrics())["praxis_incident_write_conflicts_total",] == 1


async def test_episode_that_ends_between_reading_and_a_resolve(site: Site) -> None:
    """A resolve that the ended episode still takes is merged on the second look."""
    name = await site.fired(alert("f1"), alert("f2"))
    site.proxy.spoil(first(lambda: site.lead(name, "Failed", reason="NoTarget")), path=name)
    assert (await site.post(payload(RESOLVED)))[1]["reason"] == "Changed"
    assert statuses(await site.incident(name)) == {"f1": "resolved", "f2": "firing"}


async def test_refused_by_a_rule_of_an_ended_episode(site: Site) -> None:
    """When the API server keeps an ended episode as it is, what fires opens the next and a resolve is let go."""
    name = await site.fired(alert("f1"), alert("f2"))
    await site.lead(name, "Closed", reason="Dismissed")
    said = json.dumps({"message": "an ended episode takes no more alerts: every alert of it had cleared"})
    site.proxy.spoil(answer(422, said), path=name)
    assert (await site.post(payload(RESOLVED)))[1]["reason"] == "EpisodeEnded"
    site.proxy.spoil(answer(422, said), path=name)
    assert await site.fired(alert("f1", "resolved"), alert("f2")) == name[:-1] + "2"


async def test_rule_of_the_real_server(site: Site) -> None:
    """The API server itself refuses the gateway's account what would bring an ended episode back to life."""
    name = await site.fired()
    await site.lead(name, "Failed", reason="NoTarget")
    stored = await site.incident(name)
    firing = [each.dump() for each in stored.spec.alerts] + [alert("f2")]
    async with await Kube.connect(site.proxy.kubeconfig) as gateway:
        with pytest.raises(Refused, match="takes no more firing alerts") as refused:
            await gateway.merge_patch(path_of(Incident, site.namespace, name), {"spec": {"alerts": firing}})
    assert refused.value.status == 422


async def test_refusal_that_is_no_end_of_an_episode(site: Site) -> None:
    """A 422 on an open incident is nobody's fault outside: it is answered 503, and nothing is lost on repetition."""
    name = await site.fired()
    site.proxy.spoil(answer(422, '{"message": "spec.alerts: too many"}'), path=name)
    status, told = await site.post(payload(alert("f2")))
    assert (status, told["reason"]) == (503, "Unavailable")
    assert (await site.post(payload(alert("f2"))))[0] == 200
    assert statuses(await site.incident(name)) == {"f1": "firing", "f2": "firing"}


async def test_answer_lost_after_creation(site: Site) -> None:
    """An Incident that was created without an answer is found, not created twice."""
    site.proxy.spoil(drop_after(), method="POST", path="incidents")
    status, told = await site.post(payload())
    assert (status, told["outcome"]) == (200, "merged")
    assert len(await site.incidents()) == 1


@pytest.mark.parametrize("fault", [drop_after, drop_before])
async def test_answer_lost_while_merging(site: Site, fault: object) -> None:
    """A merge without an answer is done again, and is there once, stored or not the first time."""
    name = await site.fired()
    site.proxy.spoil(fault(), path=name)  # type: ignore[operator]
    status, _ = await site.post(payload(alert("f2")))
    assert status == 200
    assert statuses(await site.incident(name)) == {"f1": "firing", "f2": "firing"}


async def test_deleted_between_reading_and_merging(site: Site) -> None:
    """An Incident that somebody deletes in between is created anew."""
    name = await site.fired()
    site.proxy.spoil(first(lambda: site.admin.delete(path_of(Incident, site.namespace, name))), path=name)
    assert await site.fired(alert("f2")) == name
    assert statuses(await site.incident(name)) == {"f2": "firing"}


async def test_others_write_first_every_time(site: Site) -> None:
    """After ten conflicts the sender is told to come again, instead of waiting for ever."""
    name = await site.fired()
    site.proxy.spoil(answer(409, '{"message": "conflict"}'), path=name, times=10)
    status, told = await site.post(payload(alert("f2")))
    assert (status, told["error"]) == (503, "the Incident could not be written; send this again")
    assert site.proxy.count("PATCH", name) == 10
    assert (await site.post(payload(alert("f2"))))[0] == 200


async def test_nine_conflicts_are_not_too_many(site: Site) -> None:
    """One attempt less than the bound, and it is written."""
    name = await site.fired()
    site.proxy.spoil(answer(409, '{"message": "conflict"}'), path=name, times=9)
    assert (await site.post(payload(alert("f2"))))[0] == 200


async def test_api_server_that_does_not_answer(site: Site) -> None:
    """A notification is given up after its time, and the next one of the group is not held up by it."""
    go_on = asyncio.Event()
    site.proxy.spoil(first(go_on.wait), method="GET", path="incidents")
    metrics = Metrics(registry=CollectorRegistry())
    async with await Kube.connect(site.proxy.kubeconfig) as kube:
        ledger = Ledger(kube=kube, namespace=site.namespace, clock=SystemClock(), metrics=metrics, seconds=0.3)
        with pytest.raises(RetryLater, match=r"was written in 0\.3 s"):
            await ledger.record(notification())
        go_on.set()
        patient = Ledger(kube=kube, namespace=site.namespace, clock=SystemClock(), metrics=metrics)
        assert (await patient.record(notification())).cause == "FirstEpisode"


async def test_whatever_is_taken_is_stored(site: Site) -> None:
    """What the gateway understands the API server stores: odd times, names and characters are no 503."""
    odd = [
        alert("f1", began="0001-01-01T00:00:00Z"),
        alert("f2", began="9999-12-31T23:59:59.999999999Z"),
        alert("f3", began="2026-01-31T12:00:00.123+02:00"),
        alert("f4", began="2024-02-29T00:00:00-11:30"),
        alert("f5", "resolved", endsAt="0001-01-01T00:00:00Z"),
        alert("f6", labels={"": "", "\x00\x1b": "\x00\u2028\U0001f525", "a/b.c": "汉" * 600}),
        alert("f7", annotations={"summary": "\x7f" * 3000}, generatorURL="javascript:alert(1)"),
        alert("f8", labels={}, annotations={}),
        alert("a:b.c-d_E" + "0" * 55),
    ]
    for each in odd:
        status, told = await site.post(payload(alert("always"), each, key=f"\x00\n{each['fingerprint']}"))
        assert status == 202, (each, told)
    assert len(await site.incidents()) == len(odd)
