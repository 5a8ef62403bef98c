"""The door of a protected checkout: lets the admitted in, sends everybody else to the waiting room."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote

from fairdrop.waiting_room import Admission, KeyRing, Refusal, kid_of

from . import rules
from .fetching import Fetcher
from .knowledge import Knowledge
from .model import Answer, Completion, DoorUnavailable, Passed, Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_REMEMBERED = 10_000
_CLAIM_PAUSE_S = 1.0
"""How long a visitor who could not go in is not asked about again."""
_CLAIMABLE = frozenset({Refusal.REQUIRED, Refusal.EXPIRED, Refusal.REVOKED})


class Door:
    """Protects some paths of a shop with one sale's waiting room (W20).

    Verifies tokens with the published keys and the list of revoked tokens, both remembered, so that
    a request costs no call. Somebody whose turn it is enters by coming: the door claims for them.
    Fails closed (W14). Threads may share one.
    """

    def __init__(  # noqa: PLR0913 - settings, all but two have defaults
        self,
        url: str,
        sale: str,
        *,
        protect: Sequence[str] = ("/",),
        api_key: str = "",
        public_url: str | None = None,
        secrets: Sequence[str] = (),
        buyer: Callable[[Visit], str | None] | None = None,
        issuer: str = "fairdrop",
        timeout_s: float = 0.8,
        stale_s: float = 10.0,
    ) -> None:
        """Take the settings; nothing is asked until the first request.

        ``url`` is where this process reaches Fairdrop, ``public_url`` where browsers do (the same by
        default), ``sale`` the sale's slug. ``protect`` are paths that, with all below them, need an
        admission. ``api_key`` is one of FAIRDROP_SHOP_KEYS, for :meth:`complete`. ``secrets`` are
        the shared HS256 keys, where tokens are signed with them. ``buyer`` may name the visitor
        whom a request must belong to. Beyond ``stale_s`` seconds without an answer nobody enters.
        Raises ValueError for an address that is none.
        """
        self._fetch = Fetcher(url, timeout_s)
        self._sale = sale
        self._sale_path = f"/v1/sales/{quote(sale, safe='')}"
        self._protect = tuple(protect)
        self._api_key = api_key
        self._room = f"{(public_url or url).rstrip('/')}/enter/{quote(sale, safe='')}"
        self._buyer = buyer
        self._issuer = issuer
        self._knowledge = Knowledge(self._fetch, quote(sale, safe=""), secrets, stale_s)
        self._verified: dict[str, Admission] = {}
        self._verified_by: KeyRing | None = None
        self._not_called: dict[str, float] = {}

    def concerns(self, path: str) -> bool:
        """Whether the door has anything to do with a request for this path."""
        return path == rules.ENTER_PATH or rules.is_protected(path, self._protect)

    def wants_body(self, method: str, path: str) -> bool:
        """Whether :meth:`decide` needs the request's body (a form of a few kilobytes)."""
        return method == "POST" and path == rules.ENTER_PATH

    def decide(self, visit: Visit) -> Passed | Answer:
        """Let the request pass, or say what to answer. May wait for Fairdrop, a second at the most."""
        found = self._decide(visit, may_wait=True)
        assert found is not None, "whoever may wait gets an answer"
        return found

    def decide_at_once(self, visit: Visit) -> Passed | Answer | None:
        """The same from memory; None when Fairdrop has to be asked first (then use a thread)."""
        return self._decide(visit, may_wait=False)

    def complete(self, admission: Admission | str, reference: str = "") -> Completion:
        """Tell Fairdrop that the order is placed: the place is free, and the token ends.

        ``admission`` is what :class:`Passed` gave, or the token; ``reference`` your name of the
        order. Call it in the transaction that writes the order, and roll back on
        ``Completion.USED``: then one admission never makes two orders (W13). Repeating it changes
        nothing. Raises DoorUnavailable when there is no answer: repeat it later.
        """
        return self._report(admission, "completed", reference)

    def fail(self, admission: Admission | str, reference: str = "") -> Completion:
        """Tell Fairdrop that the checkout ended without an order. As :meth:`complete`."""
        return self._report(admission, "failed", reference)

    # ------------------------------------------------------------ deciding

    def _decide(self, visit: Visit, *, may_wait: bool) -> Passed | Answer | None:
        if not self.concerns(visit.path):
            return Passed(None)
        if not may_wait and not self._knowledge.is_usable:
            return None
        try:
            if self.wants_body(visit.method, visit.path):
                return self._enter(visit, may_wait=may_wait)
            cookies = rules.cookies_of(visit)
            token = visit.headers.get("fairdrop-admission") or cookies.get(
                rules.ADMISSION_COOKIE + self._sale, ""
            )
            verdict = self._verify(token, visit, may_wait=may_wait)
            if isinstance(verdict, Admission):
                return Passed(verdict)
            visitor = cookies.get(rules.VISITOR_COOKIE, "")
            if verdict in _CLAIMABLE and visitor and self._may_claim(visitor):
                if not may_wait:
                    return None
                entered = self._claim(visitor, visit)
                if entered is not None:
                    return entered
        except DoorUnavailable:
            return rules.unavailable()
        return None if verdict is None else rules.refused(verdict, visit, self._room)

    def _verify(self, token: str, visit: Visit, *, may_wait: bool) -> Admission | Refusal | None:
        """The admission, or why not; None when the keys have to be asked for first."""
        if not token:
            return Refusal.REQUIRED
        known, ring = self._knowledge.current()
        if ring is not self._verified_by:
            self._verified, self._verified_by = {}, ring
        claims = self._verified.get(token)
        if claims is None:
            kid = kid_of(token)
            if kid not in ring and kid and self._knowledge.may_look_for_key():
                if not may_wait:
                    return None
                self._knowledge.look_for_key()
                known, ring = self._knowledge.current()
            claims = ring.read(token)
            if claims is not None and claims.iss != self._issuer:
                claims = None
            if claims is not None:
                if len(self._verified) >= _REMEMBERED:
                    self._verified.clear()
                self._verified[token] = claims
        buyer = self._buyer(visit) if self._buyer is not None else None
        refusal = rules.judge(claims, known, buyer, time.time())
        return refusal if refusal is not None else claims

    # ------------------------------------------------------------ going in

    def _enter(self, visit: Visit, *, may_wait: bool) -> Answer | None:
        """The waiting room's page hands somebody over, by a form."""
        try:
            form = parse_qs(visit.body.decode("latin-1"), max_num_fields=8)
        except ValueError:
            form = {}
        token = form.get("token", [""])[0]
        verdict = self._verify(token, visit, may_wait=may_wait)
        if verdict is None:
            return None
        if isinstance(verdict, Refusal):
            # A form is sent by a browser, whatever it says that it takes.
            place = visit._replace(method="GET", headers={"accept": "text/html"})
            return rules.refused(verdict, place._replace(address=self._home(visit)), self._room)
        onwards = rules.local_path(form.get("next", ["/"])[0])
        cookie = rules.admission_cookie(self._sale, verdict, token, visit.address, time.time())
        headers = (("location", onwards), ("set-cookie", cookie), ("cache-control", "no-store"))
        return Answer(303, headers)

    def _home(self, visit: Visit) -> str:
        return visit.address.partition(rules.ENTER_PATH)[0] + "/"

    def _may_claim(self, visitor: str) -> bool:
        return self._not_called.get(visitor, float("-inf")) <= time.monotonic()

    def _claim(self, visitor: str, visit: Visit) -> Passed | None:
        """READY becomes ADMITTED by coming here; None when it is not their turn."""
        headers = {"authorization": f"Bearer {_header_safe(visitor)}"}
        if self._api_key:
            headers["fairdrop-shop-key"] = (
                self._api_key
            )  # many visitors, one address: that of the shop
        answer = self._fetch("POST", f"{self._sale_path}/claim", headers)
        token = answer.body.get("token") if isinstance(answer.body, dict) else None
        if answer.status != 200 or not isinstance(token, str):  # noqa: PLR2004 - OK
            if len(self._not_called) >= _REMEMBERED:
                self._not_called.clear()
            self._not_called[visitor] = time.monotonic() + _CLAIM_PAUSE_S
            return None
        verdict = self._verify(token, visit, may_wait=True)
        if not isinstance(verdict, Admission):
            return None
        cookie = rules.admission_cookie(self._sale, verdict, token, visit.address, time.time())
        return Passed(verdict, (cookie,))

    # ------------------------------------------------------------ the end

    def _report(self, admission: Admission | str, outcome: str, reference: str) -> Completion:
        body = {"outcome": outcome, "reference": reference}
        if isinstance(admission, str):
            body["token"] = admission
        else:
            body |= {"buyer": admission.sub, "admission": admission.jti}
        key = {"authorization": f"Bearer {self._api_key}"}
        answer = self._fetch("POST", f"{self._sale_path}/completions", key, body)
        if answer.status == 200:  # noqa: PLR2004 - OK
            return Completion.RECORDED
        code = answer.body.get("code") if isinstance(answer.body, dict) else None
        if code == Completion.USED:
            return Completion.USED
        raise ValueError(f"Fairdrop refused the report: {code or answer.status}")


def _header_safe(text: str) -> str:
    return "".join(character for character in text if "!" <= character <= "~")
