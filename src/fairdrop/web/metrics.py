"""What ``/metrics`` tells besides requests: live figures of sales, and what waits in the database."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from fairdrop.doctor import waiting
from fairdrop.drivers.database import Queries
from fairdrop.errors import DatabaseUnavailable, StoreUnavailable
from fairdrop.payments import GuardedGateway

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prometheus_client import Metric

    from fairdrop.app import Parts
    from fairdrop.catalog import Sale
    from fairdrop.doctor import Waiting
    from fairdrop.inventory import Figures
    from fairdrop.web.live import Live

SQL = Queries("fairdrop.web", "metrics")
TIMEOUT_S = 2.0
"""What the database may take to tell; Prometheus gives up after ten seconds."""


class Told(NamedTuple):
    """Families that were read for one scrape, as a collector."""

    families: Sequence[Metric]

    def collect(self) -> Iterable[Metric]:
        """The families."""
        return self.families


async def read(parts: Parts, live: Live) -> Told:
    """What the store and the database say now; a part that does not answer is told as down."""
    up = GaugeMetricFamily("fairdrop_up", "Whether the part answers", labels=["part"])
    families: list[Metric] = [up]
    sales: list[Sale] = []
    try:
        async with asyncio.timeout(TIMEOUT_S):
            sales = await parts.catalog.running()
            families += await _queues(parts)
        up.add_metric(["database"], 1)
    except (DatabaseUnavailable, TimeoutError):
        up.add_metric(["database"], 0)
    try:
        await parts.store.ping()
        up.add_metric(["store"], 1)
    except StoreUnavailable:
        up.add_metric(["store"], 0)
    families += _gateways(parts)
    found = await asyncio.gather(*(_figures(live, sale) for sale in sales))
    families += _sales([pair for pair in found if pair is not None])
    return Told(families)


async def _queues(parts: Parts) -> list[Metric]:
    async with parts.database.connection() as connection:
        row = await connection.fetchrow(SQL["queues"])
        found = await waiting(connection)
    assert row is not None, "an aggregate has a row"
    return [
        *_waiting(found),
        GaugeMetricFamily(
            "fairdrop_mails_failed", "Mails that were given up", value=row["mails_failed"]
        ),
        GaugeMetricFamily(
            "fairdrop_inbox", "Webhooks that wait for settlement", value=row["inbox"]
        ),
        GaugeMetricFamily(
            "fairdrop_inbox_oldest_seconds",
            "How long the oldest of them has waited",
            value=row["inbox_oldest_s"],
        ),
        GaugeMetricFamily(
            "fairdrop_outbox",
            "Events that wait to be published, at most 100000",
            value=row["outbox"],
        ),
        GaugeMetricFamily(
            "fairdrop_refunds_pending", "Refunds that are on their way", value=row["refunds"]
        ),
        GaugeMetricFamily(
            "fairdrop_payments_to_check",
            "Payments that the gateway will be asked about",
            value=row["payments"],
        ),
    ]


def _waiting(found: Sequence[Waiting]) -> Iterator[Metric]:
    """Work that is done by itself, later: what is stuck grows old here (O13)."""
    count = GaugeMetricFamily(
        "fairdrop_waiting", "What waits to be done by itself", labels=["kind"]
    )
    lying = GaugeMetricFamily(
        "fairdrop_waiting_overdue", "Of it, what nobody took for a minute", labels=["kind"]
    )
    oldest = GaugeMetricFamily(
        "fairdrop_waiting_oldest_seconds", "How long the oldest has waited", labels=["kind"]
    )
    for each in found:
        count.add_metric([each.kind], each.waiting)
        lying.add_metric([each.kind], each.left_lying)
        oldest.add_metric([each.kind], each.oldest_s)
    yield from (count, lying, oldest)


def _gateways(parts: Parts) -> Iterator[Metric]:
    """The circuit breakers of this process."""
    circuit = GaugeMetricFamily(
        "fairdrop_gateway_circuit",
        "1 for the state of the circuit before the payment gateway, in the process asked",
        labels=["gateway", "state"],
    )
    refused = CounterMetricFamily(
        "fairdrop_gateway_refused",
        "Calls that were not made, because the circuit was open",
        labels=["gateway"],
    )
    for name, gateway in parts.gateways.items():
        if isinstance(gateway, GuardedGateway):
            circuit.add_metric([name, gateway.circuit], 1)
            refused.add_metric([name], gateway.refused)
    yield from (circuit, refused)


async def _figures(live: Live, sale: Sale) -> tuple[Sale, Figures] | None:
    try:
        return sale, await live.figures(sale)
    except StoreUnavailable:
        return None


def _sales(found: Sequence[tuple[Sale, Figures]]) -> Iterator[Metric]:
    mode = GaugeMetricFamily(
        "fairdrop_sale_mode", "1 for the mode it is in", labels=["sale", "mode"]
    )
    people = GaugeMetricFamily(
        "fairdrop_sale_people", "People by where they are", labels=["sale", "place"]
    )
    passed = CounterMetricFamily(
        "fairdrop_sale_passed",
        "People who ever joined, went in, left, were done",
        labels=["sale", "what"],
    )
    rate = GaugeMetricFamily(
        "fairdrop_sale_calls_per_second",
        "The pace, as set, as it is now (adaptive), and as measured",
        labels=["sale", "kind"],
    )
    steps = CounterMetricFamily(
        "fairdrop_sale_pace_steps",
        "Steps of the adaptive pace by what they did",
        labels=["sale", "step"],
    )
    units = GaugeMetricFamily(
        "fairdrop_sale_units", "Units by state", labels=["sale", "variant", "state"]
    )
    for sale, figures in found:
        name = sale.slug
        mode.add_metric([name, figures.mode], 1)
        people.add_metric([name, "waiting"], figures.waiting)
        people.add_metric([name, "called"], figures.called)
        people.add_metric([name, "admitted"], figures.active)
        people.add_metric([name, "missed"], figures.missed)
        passed.add_metric([name, "joined"], figures.joined)
        passed.add_metric([name, "admitted"], figures.admitted)
        passed.add_metric([name, "left"], figures.left)
        passed.add_metric([name, "done"], figures.done)
        rate.add_metric([name, "set"], figures.rate_milli / 1_000)
        rate.add_metric([name, "now"], figures.pace.pace_milli / 1_000)
        rate.add_metric([name, "measured"], figures.measured_milli / 1_000)
        steps.add_metric([name, "up"], figures.pace.steps_up)
        steps.add_metric([name, "down"], figures.pace.steps_down)
        steps.add_metric([name, "kept"], figures.pace.steps_kept)
        passed.add_metric([name, "restored"], figures.pace.restored)
        for variant, stock in zip(sale.variants, figures.variants, strict=True):
            units.add_metric([name, variant.id, "free"], stock.free)
            units.add_metric([name, variant.id, "held"], stock.held)
            units.add_metric([name, variant.id, "sold"], stock.sold)
    yield from (mode, people, passed, rate, steps, units)
