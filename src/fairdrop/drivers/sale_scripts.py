"""Scripts of a sale, called one at a time or coalesced, with "not loaded" told in one way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from fairdrop.batching import Batcher
from fairdrop.errors import StoreUnavailable
from fairdrop.ids import SaleRef

from .store import Script, Store

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence


class Answer(Protocol):
    """What every script's reply begins with."""

    @property
    def status(self) -> str:
        """The status named in the script's header, ``NO_SALE`` among them."""


Item = TypeVar("Item")
Reply = TypeVar("Reply", bound=Answer)
Outcome = TypeVar("Outcome")


class SaleNotLoaded(StoreUnavailable):
    """The store answers, but has not got this sale at this epoch: fail closed until it is loaded."""


class SaleScript(Generic[Reply]):
    """One script, for any sale."""

    def __init__(self, store: Store, package: str, name: str, reply: type[Reply]) -> None:
        """Load ``lua/<name>.lua`` of the package; replies are decoded as ``reply``."""
        self.script = Script.load(package, name)
        self._store = store
        self._decoder = msgspec.msgpack.Decoder(reply)
        self._keys: dict[SaleRef, tuple[str, ...]] = {}

    async def __call__(self, sale: SaleRef, batch: Any, *, now_ms: int = 0) -> Reply:
        """Run the script once. Raises SaleNotLoaded or StoreUnavailable."""
        keys = self._keys.get(sale)
        if keys is None:
            keys = self._keys[sale] = self.script.keys(sale.id, sale.epoch)
        reply = await self._store.run(self.script, keys, batch, self._decoder, now_ms=now_ms)
        if reply.status == "NO_SALE":
            raise SaleNotLoaded(f"{self.script.name}: the store has not loaded sale {sale.id}")
        return reply


class CoalescedScript(Generic[Item, Outcome]):
    """A script whose calls are coalesced, a batch for each sale."""

    def __init__(
        self,
        script: SaleScript[Reply],
        outcomes: Callable[[Reply], Sequence[Outcome]],
        *,
        max_batch: int = 64,
        max_queue: int = 50_000,
        max_in_flight: int = 2,
    ) -> None:
        """``outcomes`` takes a reply apart into one outcome an item, in order.

        Two batches under way keep the store busy; one at a time makes larger and fewer ones.
        """

        def batcher_for(sale: SaleRef) -> Batcher[Item, Outcome]:
            async def run(items: list[Item]) -> Sequence[Outcome | Exception]:
                return outcomes(await script(sale, items))

            return Batcher(
                script.script.name,
                run,
                max_batch=max_batch,
                max_queue=max_queue,
                max_in_flight=max_in_flight,
            )

        self._make = batcher_for
        self._batchers: dict[SaleRef, Batcher[Item, Outcome]] = {}

    @property
    def batchers(self) -> Sequence[Batcher[Item, Outcome]]:
        """The batchers made so far, one a sale; for their counters."""
        return list(self._batchers.values())

    def submit(self, sale: SaleRef, item: Item) -> asyncio.Future[Outcome]:
        """Queue the item for the sale's next batch. Raises Overloaded at once when it is full."""
        batcher = self._batchers.get(sale)
        if batcher is None:
            batcher = self._batchers[sale] = self._make(sale)
        return batcher.submit(item)
