"""Proof of work and CAPTCHA before a step of the line, where the settings ask for them (W18).

A refusal carries what the browser needs to go on: the challenge, or the widget to show. Its next
request carries the solution in ``Fairdrop-Proof``, or the widget's token in ``Fairdrop-Captcha``.
Whoever has a place already is asked for neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairdrop.access import CaptchaResult, Proof
from fairdrop.waiting_room import State
from fairdrop.web.wire import Problem, unavailable

from .limits import address_key, shows_server_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairdrop.app import Parts
    from fairdrop.catalog import Sale
    from fairdrop.web.wire import Scope

PROOF = b"fairdrop-proof"
CAPTCHA = b"fairdrop-captcha"
_EVERYBODY = "all"


def checks_joins(parts: Parts) -> bool:
    """Whether the settings ask for anything before a join: most sites' lines are looked at no further."""
    return parts.settings.proof_of_work != "off" or parts.settings.captcha != "off"


async def check_join(
    parts: Parts, scope: Scope, headers: Mapping[bytes, bytes], sale: Sale, visitor: str | None
) -> None:
    """Before somebody gets a place. Raises Problem 403 with what is missing, or 503."""
    settings = parts.settings
    address = address_key(parts, scope)
    busy = _is_busy(parts, address)
    proof = settings.proof_of_work == "always" or (settings.proof_of_work == "adaptive" and busy)
    captcha = settings.captcha == "always" or (settings.captcha == "adaptive" and busy)
    if not (proof or captcha) or shows_server_key(parts, scope):
        return
    if visitor is not None and await _has_place(parts, sale, visitor):
        return
    if captcha and proof and headers.get(CAPTCHA) and not headers.get(PROOF):
        # Both count once: nothing is checked, and so used up, before both are there.
        await _require_proof(parts, headers, sale, "join")
    # The CAPTCHA first: it costs the visitor more, and a used proof cannot be shown again.
    if captcha:
        await _require_captcha(parts, address, headers)
    if proof:
        await _require_proof(parts, headers, sale, "join")


async def check_claim(
    parts: Parts, scope: Scope, headers: Mapping[bytes, bytes], sale: Sale, visitor: str
) -> None:
    """Before somebody who was called goes in. Raises Problem 403."""
    settings = parts.settings
    if not settings.proof_at_claim or settings.proof_of_work != "always":
        return
    if shows_server_key(parts, scope):
        return
    place, _ = await parts.waiting_room.status(sale.ref, visitor)
    if place.state is State.READY:
        await _require_proof(parts, headers, sale, "claim")


def _is_busy(parts: Parts, address: str) -> bool:
    """Whether more people join than usual, from this address or altogether."""
    if not address:
        return False
    rush = parts.limits.take("joins", _EVERYBODY) is not None
    return parts.limits.take("joins_address", address) is not None or rush


async def _has_place(parts: Parts, sale: Sale, visitor: str) -> bool:
    place, _ = await parts.waiting_room.status(sale.ref, visitor)
    return place.state not in (State.NOT_ENTERED, State.CLOSED)


async def _require_proof(
    parts: Parts, headers: Mapping[bytes, bytes], sale: Sale, step: str
) -> None:
    solution = headers.get(PROOF, b"").decode("latin-1")
    proof = await parts.proofs.check(sale.ref, step, solution)
    if proof is Proof.GOOD:
        return
    raise Problem(
        403,
        "proof_required",
        "Solve the challenge and send its solution in Fairdrop-Proof; browsers do it by themselves.",
        reason=proof,
        challenge=parts.proofs.challenge(sale.ref, step),
    )


async def _require_captcha(parts: Parts, address: str, headers: Mapping[bytes, bytes]) -> None:
    verifier = parts.captcha
    if verifier is None:
        return
    response = headers.get(CAPTCHA, b"").decode("latin-1")
    result = await verifier.verify(response, address)
    if result is CaptchaResult.PASSED:
        return
    if result is CaptchaResult.UNAVAILABLE:
        if parts.settings.captcha_outage == "allow":
            return
        raise unavailable(
            "captcha_unavailable", "Whether you are a person cannot be checked just now.", 5
        )
    raise Problem(
        403,
        "captcha_required",
        "Show that you are a person, and send the widget's token in Fairdrop-Captcha.",
        reason=result,
        provider=verifier.provider,
        script=verifier.script_url,
        site_key=verifier.site_key,
    )
