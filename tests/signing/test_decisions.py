"""What is found on the decisions of a list, and what is not known of them."""

from __future__ import annotations

from praxis.api.approval import Verdict, VerdictStatus
from praxis.approval.signature import Unknown, Unverified, Verified
from praxis.errors import NeedsPerson, Refused
from praxis.signing.decisions import checked
from praxis.signing.openssh import sign
from praxis.signing.signers import AllowedSigners
from tests.builders import approval
from tests.signing.conftest import Keygen, public

REFUSED = VerdictStatus(verdict=Verdict.REFUSED, reason="SignatureNotVerified", message="its signature does not hold")


async def test_only_what_is_signed_is_checked(keygen: Keygen) -> None:
    """A list that is broken stops nobody who decides under their own name: it is not even read."""
    key = keygen("alice")
    asked = 0

    async def signers() -> AllowedSigners:
        nonlocal asked
        asked += 1
        return AllowedSigners(f"alice {public(key)}\n")

    given = approval()
    signed = given.model_copy(update={"spec": given.spec.replace(signature=sign(given.signed_content, key))})
    assert await checked([given], signers) == {}
    assert asked == 0
    found = await checked([given, signed], signers)
    assert list(found) == [signed.metadata.uid]
    assert isinstance(found[signed.metadata.uid], Verified)


async def test_without_the_list_nothing_is_known() -> None:
    """It was deleted, may not be read, or is not what it should be: no verdict can be given, and none is taken back."""
    given = approval(signature="-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n")

    async def none() -> None:
        return None

    async def forbidden() -> AllowedSigners:
        raise Refused("configmaps is forbidden", status=403)

    async def binary() -> AllowedSigners:
        raise NeedsPerson("revoked_keys is binary")

    assert await checked([given], none) == {
        given.metadata.uid: Unknown(
            "there is no ConfigMap praxis-allowed-signers in the namespace of the installation; "
            "an admin lists there who signs with which key"
        )
    }
    assert await checked([given], forbidden) == {
        given.metadata.uid: Unknown("the list of signers cannot be read: configmaps is forbidden")
    }
    assert await checked([given], binary) == {
        given.metadata.uid: Unknown("the list of signers cannot be read: revoked_keys is binary")
    }


async def test_what_was_refused_for_its_signature_is_not_checked_again(keygen: Keygen) -> None:
    """The verdict is final: thousands of them would otherwise cost a process each at every look."""
    key = keygen("alice")
    given = approval(status=REFUSED)
    signed = given.model_copy(update={"spec": given.spec.replace(signature=sign(given.signed_content, key))})

    async def signers() -> AllowedSigners:
        return AllowedSigners(f"alice {public(key)}\n")

    assert await checked([signed], signers) == {
        signed.metadata.uid: Unverified("it was refused for its signature before")
    }
