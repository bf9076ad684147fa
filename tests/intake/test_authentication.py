"""Who may send: tokens and signatures, files that change, and everything that is neither."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from praxis.clock import SystemClock
from praxis.errors import NeedsPerson
from praxis.intake.authentication import Bearer, Signed

TOKEN = "token-0123456789"
KEY = b"0123456789abcdef01234567"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
BODY = b'{"groupKey": "g"}'


def signed_headers(
    key: bytes = KEY, *, at: float | None = None, body: bytes = BODY, sent_as: str = "msg_1"
) -> dict[str, str]:
    """Headers as the Standard Webhooks specification makes them, without the library that checks them."""
    stamp = str(int(at if at is not None else datetime.now(UTC).timestamp()))
    mac = hmac.new(key, f"{sent_as}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": sent_as,
        "webhook-timestamp": stamp,
        "webhook-signature": "v1," + base64.b64encode(mac).decode(),
    }


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """A file with a token."""
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return path


@pytest.fixture
def signed(tmp_path: Path) -> Signed:
    """A check of signatures with one secret."""
    return _signed(tmp_path, SECRET)


def _signed(directory: Path, text: str, window: float = 300) -> Signed:
    path = directory / "secret"
    path.write_text(text)
    return Signed(path, replay_window=window, clock=SystemClock())


@pytest.mark.parametrize(
    ("header", "admitted"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer  {TOKEN} ", True),
        (f"Bearer {TOKEN}x", False),
        (f"Bearer {TOKEN[:-1]}", False),
        (f"Bearer {TOKEN} {TOKEN}", False),
        (f"Basic {TOKEN}", False),
        (TOKEN, False),
        ("Bearer ", False),
        ("Bearer", False),
        ("", False),
        ("Bearer \udcff\udc80", False),
        ("Bearer tökén", False),
    ],
)
def test_bearer(token_file: Path, header: str, admitted: bool) -> None:
    """Exactly the token in the file admits."""
    assert Bearer(token_file).admits({"Authorization": header}) is admitted
    assert Bearer(token_file).admits({}) is False


def test_bearer_rotation(token_file: Path) -> None:
    """Both tokens count while both are in the file, and a token that is gone counts no more."""
    bearer = Bearer(token_file)
    new = "another-token-01"
    assert not bearer.admits({"Authorization": f"Bearer {new}"})
    token_file.write_text(f"{TOKEN}\n\n {new} \n")
    assert bearer.admits({"Authorization": f"Bearer {TOKEN}"})
    assert bearer.admits({"Authorization": f"Bearer {new}"})
    token_file.write_text(new)
    assert not bearer.admits({"Authorization": f"Bearer {TOKEN}"})


@pytest.mark.parametrize("text", [b"", b" \n\n", b"\xff" * 20, b"short-token-015"])
def test_token_files_that_admit_nobody(token_file: Path, text: bytes) -> None:
    """An empty file, one that is no text, and a token that can be guessed are a fault of the installation."""
    token_file.write_bytes(text)
    with pytest.raises(NeedsPerson, match=str(token_file)):
        Bearer(token_file).check()
    with pytest.raises(NeedsPerson):
        Bearer(token_file).admits({"Authorization": "Bearer x"})


def test_absent_file(tmp_path: Path) -> None:
    """A file that is gone admits nobody, and says which one."""
    with pytest.raises(NeedsPerson, match="absent cannot be read: No such file"):
        Bearer(tmp_path / "absent").check()


def test_signature(signed: Signed) -> None:
    """A signature of this id, this moment and this body counts; of anything else it does not."""
    headers = signed_headers()
    assert signed.admits(headers)
    assert signed.vouches(headers, BODY)
    assert signed.notification_id(headers) == "msg_1"
    assert not signed.vouches(headers, BODY + b" ")
    assert not signed.vouches(headers | {"webhook-id": "msg_2"}, BODY)
    assert not signed.vouches(signed_headers(b"x" * 24), BODY)


def test_vector_of_the_specification(tmp_path: Path) -> None:
    """The test vector of the Standard Webhooks reference libraries has this signature."""
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = signed_headers(key, at=1614265330, body=b'{"test": 2432232314}', sent_as="msg_p5jXN8AQM9LWM0D4loKWxJek")
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(("off", "admitted"), [(-290, True), (290, True), (-310, False), (310, False)])
def test_replay_window(signed: Signed, off: int, admitted: bool) -> None:
    """A timestamp more than five minutes off is refused, before and after the body is read."""
    headers = signed_headers(at=datetime.now(UTC).timestamp() + off)
    assert signed.admits(headers) is admitted
    assert signed.vouches(headers, BODY) is admitted


def test_narrower_replay_window(tmp_path: Path) -> None:
    """The window can be made narrower than the standard's."""
    narrow = _signed(tmp_path, SECRET, window=30)
    now = datetime.now(UTC).timestamp()
    assert narrow.admits(signed_headers(at=now - 20))
    assert not narrow.admits(signed_headers(at=now - 40))


@pytest.mark.parametrize("absent", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_absent_headers(signed: Signed, absent: str) -> None:
    """Without one of the three headers the body is not even read."""
    headers = {name: value for name, value in signed_headers().items() if name != absent}
    assert not signed.admits(headers)
    assert not signed.vouches(headers, BODY)


@pytest.mark.parametrize("stamp", ["", "yesterday", "nan", "inf", "-inf", "1e400", "0x10"])
def test_malformed_timestamps(signed: Signed, stamp: str) -> None:
    """What is no time is refused."""
    assert not signed.admits(signed_headers() | {"webhook-timestamp": stamp})


@pytest.mark.parametrize(("length", "admitted"), [(0, False), (1, True), (256, True), (257, False)])
def test_length_of_an_id(signed: Signed, length: int, admitted: bool) -> None:
    """An id is remembered, so it has a bound."""
    assert signed.admits(signed_headers(sent_as="i" * length)) is admitted


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    """A check of signatures whose file stays for all examples of a test."""
    return _signed(tmp_path_factory.mktemp("secrets"), SECRET)


@given(signature=st.text(), body=st.binary(max_size=50))
def test_any_signature(kept: Signed, signature: str, body: bytes) -> None:
    """A header that is no signature, and a body that is no text, are refused without an error."""
    assert not kept.vouches(signed_headers() | {"webhook-signature": signature}, body)


def test_body_that_is_not_utf8(signed: Signed) -> None:
    """A body that is no text cannot be signed in this standard."""
    body = b"\xff\xfe"
    assert not signed.vouches(signed_headers(body=body), body)


def test_secret_rotation(tmp_path: Path) -> None:
    """While two secrets are in the file, both sign; one that is gone does not."""
    new = b"n" * 24
    check = _signed(tmp_path, f"{SECRET}\nwhsec_{base64.b64encode(new).decode()}\n")
    assert check.vouches(signed_headers(), BODY)
    assert check.vouches(signed_headers(new), BODY)
    (tmp_path / "secret").write_text(base64.b64encode(new).decode())
    assert not check.vouches(signed_headers(), BODY)
    assert check.vouches(signed_headers(new), BODY)


@pytest.mark.parametrize(("size", "taken"), [(23, False), (24, True), (64, True)])
def test_length_of_a_secret(tmp_path: Path, size: int, taken: bool) -> None:
    """A secret of less than 24 bytes is refused, as the standard says."""
    check = _signed(tmp_path, "whsec_" + base64.b64encode(b"k" * size).decode().rstrip("="))
    if taken:
        check.check()
    else:
        with pytest.raises(NeedsPerson, match="at least 24 bytes"):
            check.check()


def test_secret_that_is_no_base64(tmp_path: Path) -> None:
    """A secret with other characters is refused, not shortened."""
    with pytest.raises(NeedsPerson, match="whsec_ and base64"):
        _signed(tmp_path, "whsec_" + "!" * 40).check()
