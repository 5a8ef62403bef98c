"""A Stripe to test against: localstripe behind a front that adds what it lacks.

localstripe is a server of its own that keeps PaymentIntents, charges and refunds as Stripe does. It
has no Checkout Sessions, no idempotency keys, no search, no bound on refunds, and leaves out
``amount_received``, ``amount_captured`` and the charge's metadata. Those are here, in the shapes that
Stripe's reference for the pinned version shows; everything else is passed on. What neither can show:
3-D Secure, Stripe's own time limits, and what a real account's settings change.

``python -m tests.integration.payments.stripe_front`` starts both and prints where it listens. Only
loopback addresses are listened on.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

import aiohttp
from aiohttp import web

from fairdrop.payments.stripe import API_VERSION

KEY = "sk_test_of_the_tests"
LOCALSTRIPE = (
    "import sys; from aiohttp import web; from localstripe.server import app;"
    "web.run_app(app, host='127.0.0.1', port=int(sys.argv[1]), print=None)"
)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Json = dict[str, Any]
_THREE_DECIMALS = frozenset({"bhd", "jod", "kwd", "omr", "tnd"})


def refused(
    status: int, code: str, message: str, kind: str = "invalid_request_error"
) -> web.Response:
    return web.json_response(
        {"error": {"type": kind, "code": code, "message": message}}, status=status
    )


class Front:
    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.sessions: dict[str, Json] = {}
        self.references: dict[str, str] = {}
        """PaymentIntent → reference."""
        self.answers: dict[str, tuple[str, bytes, int, str]] = {}
        self.client: aiohttp.ClientSession

    # ------------------------------------------------------------ every request

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith("/_buyer/"):
            return await handler(request)
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return refused(401, "api_key_invalid", "Invalid API Key provided")
        if request.headers.get("stripe-version") != API_VERSION:
            return refused(400, "version", "Not the pinned version of the API")
        key = request.headers.get("idempotency-key")
        if request.method != "POST" or key is None:
            return await handler(request)
        asked = await request.read()
        earlier = self.answers.get(key)
        if earlier is not None:
            if earlier[:2] != (request.path, asked):
                message = "Keys for idempotent requests can only be used with the same parameters"
                return refused(400, "", message, "idempotency_error")
            return web.Response(text=earlier[3], status=earlier[2], content_type="application/json")
        answer = await handler(request)
        assert isinstance(answer, web.Response)
        if answer.status < 400:
            self.answers[key] = (request.path, asked, answer.status, str(answer.text))
        return answer

    async def pass_on(self, request: web.Request) -> web.Response:
        """To localstripe, and what it leaves out added to the answer."""
        status, document = await self.ask(
            request.method, request.path_qs, await request.read() if request.can_read_body else b""
        )
        return web.json_response(document, status=status)

    async def ask(self, method: str, path: str, body: bytes | str = b"") -> tuple[int, Json]:
        headers = {"authorization": f"Bearer {KEY}"}
        if body:
            headers["content-type"] = "application/x-www-form-urlencoded"
        async with self.client.request(
            method, self.backend + path, data=body or None, headers=headers
        ) as answer:
            document = json.loads(await answer.text())
        return answer.status, await self.completed(document)

    async def completed(self, document: Any) -> Any:
        if not isinstance(document, dict):
            return document
        if document.get("object") == "list":
            document["data"] = [await self.completed(one) for one in document["data"]]
        if document.get("object") == "payment_intent":
            self._complete_payment(document)
        if document.get("object") == "charge":
            self._complete_charge(document)
        return document

    def _complete_payment(self, payment: Json) -> None:
        took = payment["status"] == "succeeded"
        payment["amount_received"] = payment["amount"] if took else 0
        payment["amount_capturable"] = (
            payment["amount"] if payment["status"] == "requires_capture" else 0
        )
        if isinstance(payment.get("latest_charge"), dict):
            self._complete_charge(payment["latest_charge"])

    def _complete_charge(self, charge: Json) -> None:
        took = charge["status"] == "succeeded" and charge["captured"]
        charge["amount_captured"] = charge["amount"] if took else 0
        reference = self.references.get(charge["payment_intent"] or "")
        charge["metadata"] = {"reference": reference} if reference else {}

    # ------------------------------------------------------------ sessions

    async def create(self, request: web.Request) -> web.Response:
        form = dict(parse_qsl((await request.read()).decode()))
        currency = form["line_items[0][price_data][currency]"]
        amount = int(form["line_items[0][price_data][unit_amount]"])
        if form["mode"] != "payment" or form["success_url"] != form["cancel_url"]:
            return refused(400, "parameter_invalid", "Not the session that the tests expect")
        if currency in _THREE_DECIMALS and amount % 10:
            return refused(400, "parameter_invalid_integer", "The last digit has to be 0")
        session: Json = {
            "id": f"cs_test_{secrets.token_hex(12)}",
            "object": "checkout.session",
            "status": "open",
            "payment_status": "unpaid",
            "amount_total": amount,
            "currency": currency,
            "created": int(time.time()),
            "client_reference_id": form["client_reference_id"],
            "payment_intent": None,
            "metadata": {"reference": form["metadata[reference]"]},
        }
        session["url"] = f"https://checkout.stripe.com/c/pay/{session['id']}"
        session["_capture"] = form["payment_intent_data[capture_method]"]
        session["_reference"] = form["payment_intent_data[metadata][reference]"]
        self.sessions[session["id"]] = session
        return await self.session_answer(session)

    async def session_answer(self, session: Json) -> web.Response:
        shown = {name: value for name, value in session.items() if not name.startswith("_")}
        if session["payment_intent"] is not None:
            _, payment = await self.ask("GET", f"/v1/payment_intents/{session['payment_intent']}")
            shown["payment_intent"] = payment
        if session["status"] != "open":
            shown["url"] = None
        return web.json_response(shown)

    async def retrieve(self, request: web.Request) -> web.Response:
        session = self.sessions.get(request.match_info["session"])
        if session is None:
            return refused(404, "resource_missing", "No such checkout session")
        return await self.session_answer(session)

    async def expire(self, request: web.Request) -> web.Response:
        session = self.sessions.get(request.match_info["session"])
        if session is None:
            return refused(404, "resource_missing", "No such checkout session")
        if session["status"] != "open":
            return refused(400, "resource_already_exists", "Only open sessions can be expired")
        session["status"] = "expired"
        return await self.session_answer(session)

    async def search(self, request: web.Request) -> web.Response:
        reference = request.query["query"].split("'")[3]
        found = [
            (await self.ask("GET", f"/v1/payment_intents/{payment}"))[1]
            for payment, of in self.references.items()
            if of == reference
        ]
        return web.json_response(
            {"object": "search_result", "data": found, "has_more": False, "next_page": None}
        )

    # ------------------------------------------------------------ refunds

    async def refund(self, request: web.Request) -> web.Response:
        asked = await request.read()
        form = dict(parse_qsl(asked.decode()))
        status, payment = await self.ask("GET", f"/v1/payment_intents/{form['payment_intent']}")
        if status != 200:
            return refused(404, "resource_missing", "No such payment_intent")
        charge = payment["latest_charge"] or {"amount_captured": 0, "amount_refunded": 0}
        if int(form["amount"]) > charge["amount_captured"] - charge["amount_refunded"]:
            return refused(400, "", "Refund amount is greater than unrefunded amount on charge")
        status, document = await self.ask("POST", "/v1/refunds", asked)
        return web.json_response(document, status=status)

    # ------------------------------------------------------------ the buyer

    async def pay(self, request: web.Request) -> web.Response:
        """What Stripe's page does when the buyer pays; a second attempt is a payment of its own, since
        localstripe cannot confirm one again."""
        session = self.sessions[request.match_info["session"]]
        if session["status"] != "open":
            return refused(409, "session_over", "The page says that the session is over")
        card = (await request.json())["card"]
        _, method = await self.ask(
            "POST",
            "/v1/payment_methods",
            f"type=card&card[number]={card}&card[exp_month]=12&card[exp_year]=2099&card[cvc]=123",
        )
        form = (
            f"amount={session['amount_total']}&currency={session['currency']}"
            f"&payment_method={method['id']}&capture_method={session['_capture']}"
            f"&metadata[reference]={session['_reference']}"
        )
        _, payment = await self.ask("POST", "/v1/payment_intents", form)
        session["payment_intent"] = payment["id"]
        self.references[payment["id"]] = session["_reference"]
        await self.ask("POST", f"/v1/payment_intents/{payment['id']}/confirm")
        _, payment = await self.ask("GET", f"/v1/payment_intents/{payment['id']}")
        if payment["status"] in ("succeeded", "requires_capture"):
            session["status"] = "complete"
        return web.json_response({"status": payment["status"]})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def main() -> None:
    port = _free_port()
    backend = subprocess.Popen([sys.executable, "-c", LOCALSTRIPE, str(port)])
    try:
        front = Front(f"http://127.0.0.1:{port}")
        application = web.Application(middlewares=[front.guard])
        router = application.router
        router.add_post("/v1/checkout/sessions", front.create)
        router.add_get("/v1/checkout/sessions/{session}", front.retrieve)
        router.add_post("/v1/checkout/sessions/{session}/expire", front.expire)
        router.add_get("/v1/payment_intents/search", front.search)
        router.add_post("/v1/refunds", front.refund)
        router.add_post("/_buyer/{session}", front.pay)
        router.add_route("*", "/v1/{rest:.*}", front.pass_on)
        async with aiohttp.ClientSession() as front.client:
            await _until_it_answers(front)
            runner = web.AppRunner(application)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            sys.stdout.write(f"ready http://127.0.0.1:{runner.addresses[0][1]}\n")
            sys.stdout.flush()
            # Ends with whoever started it: its standard input is closed then.
            await asyncio.to_thread(sys.stdin.read)
            await runner.cleanup()
    finally:
        backend.kill()
        backend.wait()


async def _until_it_answers(front: Front) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await front.ask("GET", "/v1/refunds")
            except aiohttp.ClientError:
                await asyncio.sleep(0.02)
            else:
                return


if __name__ == "__main__":
    asyncio.run(main())
