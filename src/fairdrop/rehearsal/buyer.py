"""One simulated buyer's visit: the line, the choice, and what they mean to do with it.

The steps are those of the real pages, with the same patience: the place in the line by
subtraction from the public document, the personal status only when it is their turn, the same
idempotency key for the same wish, and another try when a part of the shop restarts.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from http import HTTPStatus

from .paying import pay_order
from .plan import BuyerPlan, Ending
from .result import Result
from .visitor import Place, Reservation, Shop, Unexpected, Visitor, expect, place_of, reservation_of

LOOK_FOR_DRAW_EVERY_S = 0.2
_ADMISSION_OVER = frozenset(
    {"admission_required", "admission_expired", "admission_revoked", "admission_forged"}
)


class Asked(StrEnum):
    """What came of asking for units, when it was not units."""

    TAKEN = "taken"
    OUTSIDE = "outside"


class Buyer:
    """One person with a plan."""

    def __init__(self, plan: BuyerPlan, shop: Shop) -> None:
        """Not arrived yet."""
        self._plan = plan
        self._shop = shop
        self._board = shop.board
        self._visitor = Visitor(shop)
        self._missed_call = False
        self._looked_early = False
        self._position = 0
        self._asked = 0

    async def visit(self) -> Result:
        """Live the plan; say how it ended. Takes as long as the shop lets it."""
        try:
            while True:
                place = await self._line_up()
                if isinstance(place, Result):
                    return place
                result = await self._buy()
                if result is not None:
                    return result
        except Unexpected as error:
            self._shop.complain(str(error))
            return Result.PUZZLED

    # ------------------------------------------------------------ the line

    async def _line_up(self) -> Place | Result:
        """Join, wait, follow the call; the place inside, or how the visit ended."""
        place = await self._join()
        while isinstance(place, Place):
            if place.state == "ADMITTED" and place.token is not None:
                self._visitor.admit(place.token)
                return place
            match place.state:
                case "LOBBY":
                    place = await self._await_draw()
                case "WAITING":
                    place = await self._wait(place)
                case "READY":
                    place = await self._follow_call(place)
                case "MISSED" | "NOT_ENTERED":
                    place = await self._join()
                case _:
                    return Result.CLOSED
        return place

    async def _join(self) -> Place | Result:
        answer = await self._visitor.join()
        while answer.code == "sale_not_open":
            await self._board.opened()
            answer = await self._visitor.join()
        if answer.code == "sale_closed":
            return Result.CLOSED
        place = place_of(expect(answer, "join").body)
        again = 0 if self._position else self._plan.joins_again
        self._position = place.position
        if again and self._plan.joins_at_once:
            await asyncio.gather(*(self._join_again(place) for _ in range(again)))
        else:
            for _ in range(again):
                await self._join_again(place)
        return place

    async def _await_draw(self) -> Place:
        """In the lobby until the order is drawn (W3)."""
        await self._board.opened()
        place = await self._visitor.look()
        while place.state == "LOBBY":
            await asyncio.sleep(LOOK_FOR_DRAW_EVERY_S)
            place = await self._visitor.look()
        self._position = place.position
        return place

    async def _join_again(self, first: Place) -> None:
        """Whoever joins again keeps the place they have (W1)."""
        again = place_of(expect(await self._visitor.join(), "join").body)
        if first.state == "LOBBY":
            return
        if again.position != first.position and not self._board.has_lost_line:
            self._shop.complain(
                f"join: place {first.position} became {again.position} by joining again"
            )

    async def _wait(self, place: Place) -> Place | Result:
        """Until it is their turn, everything is sold, or they have had enough."""
        if self._plan.looks_early and not self._looked_early:
            self._looked_early = True
            return await self._visitor.look()
        limit_ms = self._plan.leaves_line_after_ms
        try:
            async with asyncio.timeout(None if limit_ms is None else limit_ms / 1_000):
                called = await self._board.turn(place.position, self._plan.wishes)
        except TimeoutError:
            await self._visitor.leave()
            return Result.LEFT_LINE
        if not called:
            # Everything is sold: most people in a line just close the page.
            if self._plan.looks_early:
                await self._say_goodbye()
            return Result.SOLD_OUT
        now = await self._visitor.look()
        if now.state == "WAITING":
            # Their number has been served before: they came back, and wait for room inside.
            await asyncio.sleep(now.poll_after_ms / 1_000)
        return now

    async def _follow_call(self, place: Place) -> Place | Result:
        if self._plan.misses_call and not self._missed_call:
            self._missed_call = True
            if not self._plan.comes_back:
                return Result.MISSED_CALL
            await asyncio.sleep(max(0, self._board.ms_until(place.claim_by_ms or 0) + 50) / 1_000)
            return await self._visitor.look()
        answer = await self._visitor.claim()
        if answer.code in {"missed", "not_called"}:
            await asyncio.sleep(0.2)
            return await self._visitor.look()
        return place_of(expect(answer, "claim").body)

    async def _say_goodbye(self) -> None:
        if self._plan.says_goodbye:
            await self._visitor.leave()

    # ------------------------------------------------------------ inside

    async def _buy(self) -> Result | None:
        """From the choice to the end; None when the time inside was over before there were units."""
        await asyncio.sleep(self._plan.thinks_ms / 1_000)
        reserved = await self._get_units()
        if reserved is Asked.OUTSIDE:
            return None
        if isinstance(reserved, Result):
            await self._say_goodbye()
            return reserved
        assert isinstance(reserved, Reservation)
        if self._plan.ending is Ending.FORGETS_RESERVATION:
            return Result.WALKED_AWAY
        if self._plan.ending is Ending.GIVES_BACK:
            return await self._give_back(reserved)
        result = await pay_order(self._plan, self._visitor, self._shop, reserved)
        if result in (Result.CANCELLED, Result.DECLINED, Result.EXPIRED):
            await self._say_goodbye()
        return result

    async def _get_units(self) -> Reservation | Result | Asked:
        """Ask, and while others hold everything, wait for units to come back."""
        plan, board = self._plan, self._board
        least = 1 if plan.takes_fewer else plan.quantity
        patience_s = None if plan.patience_ms is None else plan.patience_ms / 1_000
        wish, quantity = plan.wishes[0], plan.quantity
        untried = set(plan.wishes)
        try:
            async with asyncio.timeout(patience_s):
                while True:
                    got = await self._ask(wish, quantity)
                    if got is not Asked.TAKEN:
                        return got
                    untried.discard(wish)
                    found = board.find(plan.wishes, plan.quantity, least, among=untried)
                    while found is None:
                        if not await board.stock(plan.wishes, least):
                            return Result.SOLD_OUT
                        untried = set(plan.wishes)
                        found = board.find(plan.wishes, plan.quantity, least, among=untried)
                    wish, quantity = found
        except TimeoutError:
            return Result.IMPATIENT

    async def _ask(self, wish: int, quantity: int) -> Reservation | Result | Asked:
        """One wish: one idempotency key, however often it is clicked or sent."""
        assert self._board.document is not None, "nobody is inside before the first document"
        variant = self._board.document.variants[wish].id
        self._asked += 1
        key = f"wish-{self._asked}"
        clicks = 2 if self._plan.double_clicks else 1
        answer, *others = await asyncio.gather(
            *(self._visitor.reserve(key, variant, quantity) for _ in range(clicks))
        )
        if answer.status == HTTPStatus.CREATED:
            reservation = reservation_of(answer.body)
            for other in others:
                if reservation_of(expect(other, "reserve", HTTPStatus.CREATED).body) != reservation:
                    self._shop.complain("reserve: two clicks, two reservations")
            return reservation
        # Units of one's own that are on their way back count towards the limit: like sold out, later.
        if answer.code in {"sold_out", "buyer_limit"}:
            return Asked.TAKEN
        if answer.code in _ADMISSION_OVER:
            return Asked.OUTSIDE
        if answer.code == "sale_closed":
            return Result.CLOSED
        raise Unexpected(f"reserve: {answer.status} {answer.code}")

    async def _give_back(self, reserved: Reservation) -> Result:
        for _ in range(2 if self._plan.double_clicks else 1):
            expect(await self._visitor.release(reserved.id), "release")
        await self._say_goodbye()
        return Result.GAVE_BACK
