"""What is broken on purpose, and what the audit has to say of it: a list that modules add to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from fairdrop.audit import Kind
from fairdrop.checkout import Order
from tests.integration.audit.busy_shop import BusyShop

Plant = Callable[[BusyShop], Awaitable[None]]
PLANTS: list[tuple[set[Kind], Plant]] = []


def planted(*kinds: Kind) -> Callable[[Plant], Plant]:
    """What the audit has to say, exactly, after this was done to a clean shop."""

    def note(plant: Plant) -> Plant:
        PLANTS.append((set(kinds), plant))
        return plant

    return note


def key(order: Order) -> UUID:
    return UUID(order.id)


def variant(shop: BusyShop, index: int = 0) -> str:
    return shop.sale.variants[index].id
