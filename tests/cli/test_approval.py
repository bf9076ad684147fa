"""`praxis approval verify`, and what `--sign` writes: for reviewers, without a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from praxis.api.approval import IncidentApproval
from praxis.cli import main
from praxis.signing.openssh import sign
from tests import builders
from tests.signing.conftest import keygen as keygen  # noqa: PLC0414  # the fixture
from tests.signing.conftest import public

IN_TIME, LATE = "2026-01-31T12:30:00Z", "2026-01-31T13:00:00Z"
Keygen = Callable[..., Path]


@pytest.fixture
def signers(keygen: Keygen, tmp_path: Path) -> Path:
    """A list with alice's key."""
    path = tmp_path / "signers"
    path.write_text(f"alice {public(keygen('alice'))}\n")
    return path


def signed(tmp_path: Path, *, name: str = "approval", **changes: str) -> Path:
    """A file with a decision that alice signed, changed afterwards."""
    given = builders.approval(expires_at="2026-01-31T13:00:00Z")
    given = given.replace(spec=given.spec.replace(signature=sign(given.signed_content, tmp_path / "alice")))
    document = builders.manifest(given.replace(spec=given.spec.replace(**changes)))
    path = tmp_path / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def verify(*files: Path, signers: Path, at: str = IN_TIME, options: tuple[str, ...] = ()) -> Result:
    """Run it."""
    command = ["approval", "verify", *map(str, files), "--allowed-signers", str(signers), "--at", at, *options]
    return CliRunner().invoke(main, command)


def test_it_says_what_was_signed_by_whom(signers: Path, tmp_path: Path) -> None:
    """The decision, the plan, the incident, the key and the end."""
    result = verify(signed(tmp_path), signers=signers)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("ok shop/checkout-latency-1-approve-alice: Approve of plan sha256:")
    assert " of incident shop/checkout-latency-1, signed by alice with SHA256:" in result.output
    assert result.output.endswith(", until 2026-01-31T13:00:00Z\n")


def test_one_of_several_is_changed(signers: Path, tmp_path: Path) -> None:
    """Each is told; one that does not hold fails the whole."""
    result = verify(signed(tmp_path), signed(tmp_path, name="other", reason="really"), signers=signers)
    assert result.exit_code == 1
    first, second = result.output.splitlines()
    assert first.startswith("ok shop/")
    assert second == (
        "REFUSED shop/checkout-latency-1-approve-alice: it is a signature of something else: the decision was changed "
        "after it was signed"
    )


@pytest.mark.parametrize(
    ("at", "exit_code", "says"),
    [
        ("2026-01-31T12:59:59Z", 0, "ok "),
        (LATE, 1, "it expired at 2026-01-31T13:00:00Z"),
        ("noon", 2, "--at 'noon' is no RFC 3339 time"),
    ],
)
def test_it_is_in_time(signers: Path, tmp_path: Path, at: str, exit_code: int, says: str) -> None:
    """A second before its end it holds, at its end no more."""
    result = verify(signed(tmp_path), signers=signers, at=at)
    assert (result.exit_code, says in result.output) == (exit_code, True), result.output


def test_revoked(signers: Path, tmp_path: Path) -> None:
    """As the operator has them."""
    (tmp_path / "revoked").write_text(public(tmp_path / "alice"))
    result = verify(signed(tmp_path), signers=signers, options=("--revoked-keys", str(tmp_path / "revoked")))
    assert result.exit_code == 1
    assert "its key is not one that is listed for alice, or it is revoked" in result.output


def test_unsigned(signers: Path, tmp_path: Path) -> None:
    """It says how to sign."""
    path = tmp_path / "plain.yaml"
    path.write_text(yaml.safe_dump(builders.manifest(builders.approval())))
    result = verify(path, signers=signers)
    assert result.exit_code == 1
    assert "it is not signed; sign it with: praxis approve --sign KEY -o yaml" in result.output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kind: Incident", "there is no IncidentApproval in these files"),
        ("kind: IncidentApproval\nmetadata: {name: a}\nspec: {}", "spec.incidentRef: Field required"),
        ("a: &b [*b]", "Error: "),
        ("{", "Error: "),
        ("\x00", "Error: "),
    ],
)
def test_what_is_no_approval(signers: Path, tmp_path: Path, text: str, says: str) -> None:
    """Wrong usage, in a sentence."""
    path = tmp_path / "other.yaml"
    path.write_text(text)
    result = verify(path, signers=signers)
    assert result.exit_code == 2, result.output
    assert says in result.output


def test_defaults_are_written_out_or_not(signers: Path, tmp_path: Path) -> None:
    """What the API server fills in changes nothing of what was signed."""
    given = builders.approval(expires_at="2026-01-31T13:00:00Z", reason="", corrections=[])
    armour = sign(given.signed_content, tmp_path / "alice")
    document = builders.manifest(given.replace(spec=given.spec.replace(signature=armour)))
    del document["spec"]["reason"], document["spec"]["corrections"]
    path = tmp_path / "short.yaml"
    path.write_text(yaml.safe_dump(document))
    assert IncidentApproval.model_validate(document).signed_content == given.signed_content
    assert verify(path, signers=signers).exit_code == 0


@pytest.mark.parametrize("text", ["a: !!bool zz\n", "a: !!timestamp xx\n"])
def test_a_tag_is_wrong_usage(signers: Path, tmp_path: Path, text: str) -> None:
    """Exit code 2, not 1, which says that a decision does not hold."""
    (tmp_path / "tagged.yaml").write_text(text)
    result = verify(tmp_path / "tagged.yaml", signers=signers)
    assert (result.exit_code, "which JSON does not have" in result.stderr) == (2, True), result.output
