"""Confirmations as durable jobs: due by the settlement's commit, sent over real SMTP (O12, O13)."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from email import message_from_string
from email.headerregistry import Address
from email.policy import default
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from aiosmtpd.controller import Controller

from fairdrop.checkout import Order, OrderState
from fairdrop.embedded import BackgroundServices, free_ports
from fairdrop.errors import ConfigurationError
from fairdrop.notifications import Mailer, MailFacts, Post, confirmation
from fairdrop.notifications.mailer import TRIES
from fairdrop.notifications.post import Delivery, PostUnavailable
from tests.integration.checkout.scripted_gateway import ScriptedGateway
from tests.integration.checkout.shop import Shop, checkout_database, new_shop, shop_parts

NAME = "אורי 王小明 👩🏽‍🚀"


class MailServer:
    """A real SMTP server that answers as it is told to, address by address."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, str]] = []
        self.says: dict[str, str] = {}
        (self.port,) = free_ports(1)
        self.start()

    def start(self) -> None:
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)
        self._controller.start()

    def stop(self) -> None:
        self._controller.stop(no_assert=True)

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        answer = self.says.get(address, "250 OK")
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        self.taken.append((envelope.rcpt_tos[0], envelope.content.decode()))
        return "250 OK"


@pytest.fixture
def server() -> Iterator[MailServer]:
    running = MailServer()
    yield running
    running.stop()


@pytest.fixture
async def shop(services: BackgroundServices, server: MailServer) -> AsyncIterator[Shop]:
    """A sale whose orders are confirmed by mail, through the test's own mail server."""
    gateway = ScriptedGateway()
    async with shop_parts(
        services.store_url,
        await checkout_database(services),
        gateway,
        smtp_url=f"smtp://127.0.0.1:{server.port}",
        mail_from="Shop <shop@example.org>",
    ) as parts:
        yield await new_shop(parts, gateway, 5)


async def confirmed(shop: Shop, email: str | None, name: str | None = NAME) -> Order:
    buyer = await shop.admit()
    hold = await shop.reserve(buyer, 1)
    order = await shop.parts.checkout.start(shop.sale, hold, buyer, email=email, name=name)
    assert isinstance(order, Order)
    assert isinstance(await shop.pay(order), Order)
    await shop.deliver(shop.gateway.take_money(order.id))
    await shop.settle()
    return await shop.now(order, OrderState.CONFIRMED)


async def row_of(shop: Shop, order: Order) -> Any:
    """The order's mail as (state, attempts, last error, whether it is put off); None: no mail."""
    rows = await shop.fetch(
        "SELECT state, attempts, last_error, next_try_at > now() AS put_off FROM order_mails"
        " WHERE order_id = $1",
        UUID(order.id),
    )
    return rows[0] if rows else None


async def make_due(shop: Shop, order: Order) -> None:
    await shop.execute(
        "UPDATE order_mails SET next_try_at = now() WHERE order_id = $1", UUID(order.id)
    )


def mailer(shop: Shop) -> Mailer:
    assert shop.parts.mailer is not None
    return shop.parts.mailer


async def test_a_confirmed_order_is_told_once_however_often_its_webhook_comes(
    shop: Shop, server: MailServer
) -> None:
    """Case 18: one settlement, one event, one mail. Case 31: the name as it was written."""
    order = await confirmed(shop, "once@example.org")
    for _ in range(3):
        await shop.deliver(shop.gateway.take_money(order.id))
        await shop.settle()
        await mailer(shop).send_due()
    assert [to for to, _ in server.taken] == ["once@example.org"]
    row = await row_of(shop, order)
    assert (row["state"], row["attempts"]) == ("SENT", 1)
    body = message_from_string(server.taken[0][1], policy=default).get_body(("plain",))
    assert body is not None
    assert NAME in body.get_content()
    assert f"/orders/{order.id}" in body.get_content()


async def test_an_order_without_an_address_is_confirmed_without_a_mail(shop: Shop) -> None:
    assert await row_of(shop, await confirmed(shop, None)) is None


async def test_two_workers_at_once_send_one_mail(shop: Shop, server: MailServer) -> None:
    await confirmed(shop, "two-workers@example.org")
    await asyncio.gather(*(mailer(shop).send_due() for _ in range(4)))
    assert [to for to, _ in server.taken] == ["two-workers@example.org"]


async def test_a_mail_server_that_is_away_delays_mails_and_loses_none(
    shop: Shop, server: MailServer
) -> None:
    order = await confirmed(shop, "later@example.org")
    server.stop()
    with pytest.raises(PostUnavailable):
        await mailer(shop).send_due()
    row = await row_of(shop, order)
    assert (row["state"], row["attempts"], row["put_off"]) == ("PENDING", 1, True)
    server.start()
    assert await mailer(shop).send_due() == 0, "not before its time"
    await make_due(shop, order)
    await mailer(shop).send_due()
    assert [to for to, _ in server.taken] == ["later@example.org"]


async def test_an_address_refused_for_good_is_given_up_and_the_others_are_told(
    shop: Shop, server: MailServer
) -> None:
    server.says = {"gone@example.org": "550 no such user", "full@example.org": "452 mailbox full"}
    gone = await confirmed(shop, "gone@example.org")
    full = await confirmed(shop, "full@example.org")
    await confirmed(shop, "here@example.org")
    await mailer(shop).send_due()
    assert [to for to, _ in server.taken] == ["here@example.org"]
    row = await row_of(shop, gone)
    assert row["state"] == "FAILED"
    assert "no such user" in row["last_error"]
    row = await row_of(shop, full)
    assert (row["state"], row["put_off"]) == ("PENDING", True)
    assert "mailbox full" in row["last_error"]


async def test_a_mail_that_nobody_takes_is_given_up_after_its_tries(
    shop: Shop, server: MailServer
) -> None:
    server.says = {"never@example.org": "451 try later"}
    order = await confirmed(shop, "never@example.org")
    await shop.execute(
        "UPDATE order_mails SET attempts = $2 WHERE order_id = $1", UUID(order.id), TRIES
    )
    await mailer(shop).send_due()
    assert (await row_of(shop, order))["state"] == "FAILED"
    assert server.taken == []


async def test_an_address_that_no_mail_can_go_to_stops_no_other_one(
    shop: Shop, server: MailServer
) -> None:
    odd = await confirmed(shop, "odd@x,second")
    await confirmed(shop, "fine@example.org")
    await mailer(shop).send_due()
    assert [to for to, _ in server.taken] == ["fine@example.org"]
    assert (await row_of(shop, odd))["state"] == "FAILED"


async def test_the_sink_takes_mails_and_shows_them_as_they_were_written(tmp_path: Path) -> None:
    smtp_port, http_port = free_ports(2)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairdrop.notifications.sink", "--data-dir", str(tmp_path)),
        *("--smtp-port", str(smtp_port), "--http-port", str(http_port)),
    )
    try:
        await sent_to_sink(smtp_port)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{http_port}") as client:
            index = (await client.get("/")).text
            (mail,) = (await client.get("/mails.json")).json()
            page = await client.get(f"/mails/{mail['name']}")
            missing = await client.get("/mails/nothing")
        assert "Order confirmed: Drop &lt;b&gt;" in index
        assert NAME in page.text
        assert "<b>" not in page.text
        assert missing.status_code == 404
        assert mail["to"] == f"{NAME} <buyer@example.org>"
    finally:
        process.terminate()
        assert await process.wait() == 0


async def sent_to_sink(smtp_port: int) -> None:
    facts = MailFacts(
        order="1",
        sale="Drop <b>",
        to="buyer@example.org",
        name=NAME,
        lines=[],
        fee_minor=0,
        total_minor=0,
        currency="EUR",
        order_url="https://x",
        confirmed_at=datetime.now(UTC),
    )
    message = confirmation(facts, Address("Shop", "shop", "example.org"))
    post = Post(f"smtp://127.0.0.1:{smtp_port}", None)
    async with asyncio.timeout(20):
        while True:
            try:
                async with post.session() as session:
                    assert (await session.send(message)).delivery is Delivery.TAKEN
                    return
            except PostUnavailable:
                await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "url", ["mail.example.org", "http://mail", "smtp://", "smtp://u:secret@mail.example.org"]
)
def test_an_address_of_a_mail_server_that_is_none_is_told_at_the_start(url: str) -> None:
    with pytest.raises(ConfigurationError, match="FAIRDROP_SMTP_URL"):
        Post(url, None)
