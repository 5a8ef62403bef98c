"""A change is keyed: its replay is its first answer, whatever that was (H3)."""

from __future__ import annotations

from fairdrop.inventory import ReserveOutcome, VariantFigures, fingerprint
from tests.driven_sale import OPENED_MS, DrivenSale


async def test_a_replay_returns_the_first_answer_and_takes_nothing(sale: DrivenSale) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a")
    first = await sale.reserve("a", ["seat", 2], hold="one", key="k")
    sale.pass_ms(1_000)
    replay = await sale.reserve("a", ["seat", 2], hold="another id", key="k")
    assert replay.outcome is ReserveOutcome.REPLAYED
    assert (replay.hold, replay.deadline_ms, replay.lines) == (
        first.hold,
        first.deadline_ms,
        first.lines,
    )
    assert (await sale.stock("seat")).held == 2


async def test_a_double_click_in_one_batch_is_one_request(sale: DrivenSale) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a")
    click = sale.request("a", ["seat", 2], hold="one", key="k")
    answers = await sale.reserve_all(click, click, click)
    assert [answer.outcome for answer in answers] == ["RESERVED", "REPLAYED", "REPLAYED"]
    assert {answer.hold for answer in answers} == {"one"}
    assert (await sale.stock("seat")).held == 2


async def test_sold_out_is_replayed_too_even_when_units_are_back(sale: DrivenSale) -> None:
    await sale.load({"seat": 1})
    await sale.admit("a", "b")
    await sale.reserve("a", ["seat", 1], hold="h")
    first = await sale.reserve("b", ["seat", 1], key="k")
    await sale.release("h", "a")
    assert await sale.reserve("b", ["seat", 1], key="k") == first
    assert first.outcome is ReserveOutcome.SOLD_OUT
    assert (await sale.reserve("b", ["seat", 1], key="next")).outcome is ReserveOutcome.RESERVED


async def test_a_key_with_another_body_is_refused_and_keeps_its_first_answer(
    sale: DrivenSale,
) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a")
    one, other = fingerprint(b'{"lines":1}'), fingerprint(b'{"lines":2}')
    await sale.reserve("a", ["seat", 1], hold="h", key="k", fingerprint=one)
    refused = await sale.reserve("a", ["seat", 2], key="k", fingerprint=other)
    assert (refused.outcome, refused.hold) == (ReserveOutcome.KEY_REUSED, False)
    replay = await sale.reserve("a", ["seat", 1], key="k", fingerprint=one)
    assert (replay.outcome, replay.hold) == (ReserveOutcome.REPLAYED, "h")


async def test_keys_of_different_buyers_do_not_meet(sale: DrivenSale) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a", "b")
    await sale.reserve("a", ["seat", 1], hold="one", key="1")
    answer = await sale.reserve("b", ["seat", 1], hold="two", key="1")
    assert (answer.outcome, answer.hold) == (ReserveOutcome.RESERVED, "two")


async def test_being_outside_is_not_remembered_as_an_answer(sale: DrivenSale) -> None:
    """The same request succeeds once its buyer is inside."""
    await sale.load({"seat": 5})
    assert (await sale.reserve("a", ["seat", 1], key="k")).outcome is ReserveOutcome.NOT_ADMITTED
    await sale.admit("a")
    assert (await sale.reserve("a", ["seat", 1], key="k")).outcome is ReserveOutcome.RESERVED


async def test_an_answer_is_kept_for_its_time_and_not_for_ever(sale: DrivenSale) -> None:
    """Answers end in periods: each is kept for one at least, and for two at most."""
    await sale.load({"seat": 50}, idem_ttl_s=120, buyer_limit=50, lease_ttl_ms=10**9)
    await sale.admit("a")
    for begin_ms in (0, 1_000, 119_999):
        sale.now_ms = OPENED_MS + 10 * begin_ms + begin_ms
        first = await sale.reserve("a", ["seat", 1], hold=f"h{begin_ms}", key=f"k{begin_ms}")
        assert first.outcome is ReserveOutcome.RESERVED
        await sale.release(f"h{begin_ms}", "a")
        sale.pass_ms(120_000)
        replay = await sale.reserve("a", ["seat", 1], key=f"k{begin_ms}")
        assert (replay.outcome, replay.hold) == (ReserveOutcome.REPLAYED, first.hold)
        sale.pass_ms(120_000)
        again = await sale.reserve("a", ["seat", 1], hold="new", key=f"k{begin_ms}")
        assert (again.outcome, again.hold) == (ReserveOutcome.RESERVED, "new")
        await sale.release("new", "a")


async def test_the_store_itself_forgets_answers(sale: DrivenSale) -> None:
    await sale.load({"seat": 5}, idem_ttl_s=120)
    await sale.admit("a")
    before = await sale.keys_in_store()
    await sale.reserve("a", ["seat", 1], key="k")
    redis = sale.scripts.store.redis
    ends = {key: await redis.ttl(key) for key in set(await sale.keys_in_store()) - set(before)}
    answers = [ttl_s for key, ttl_s in ends.items() if b":idem:" in key]
    assert len(answers) == 1
    assert 120 <= answers[0] <= 240


async def test_taking_for_a_late_payment_is_idempotent_by_its_order(sale: DrivenSale) -> None:
    await sale.load({"seat": 5}, order_limit=1, buyer_limit=1)
    first = await sale.take_late("a", "order", ["seat", 2])  # no admission and no limit is asked
    again = await sale.take_late("a", "order", ["seat", 2])
    assert (first.outcome, again.outcome) == (ReserveOutcome.RESERVED, ReserveOutcome.REPLAYED)
    assert first.lines == again.lines == [("seat", [1, 2])]
    assert await sale.stock("seat") == VariantFigures(5, 3, 2, 0)
    assert (await sale.release("order", "a")).outcome == "ORDER_STARTED"  # its row decides
    sale.pass_ms(700_000)
    assert (await sale.expire()).undecided == [("order", "a")]


async def test_taking_again_for_a_late_payment_renews_the_time_to_confirm_it(
    sale: DrivenSale,
) -> None:
    """A second settler, after the first one died: the sweep leaves the units alone meanwhile."""
    await sale.load({"seat": 5})
    await sale.take_late("a", "order", ["seat", 1])
    sale.pass_ms(599_999)
    again = await sale.take_late("a", "order", ["seat", 1])
    assert (again.outcome, again.deadline_ms) == ("REPLAYED", sale.now_ms + 600_000)
    sale.pass_ms(599_999)
    assert (await sale.expire()).undecided == []
    sale.pass_ms(1)
    assert (await sale.expire()).undecided == [("order", "a")]
    assert await sale.commit("order") == "COMMITTED"
    assert await sale.stock("seat") == VariantFigures(5, 4, 0, 1)


async def test_taking_for_a_late_payment_works_after_the_sale_has_closed(sale: DrivenSale) -> None:
    await sale.load({"seat": 1})
    await sale.load(mode="closed")
    assert (await sale.take_late("a", "one", ["seat", 1])).outcome is ReserveOutcome.RESERVED
    assert (await sale.take_late("b", "two", ["seat", 1])).outcome is ReserveOutcome.SOLD_OUT


def test_a_fingerprint_is_text_that_tells_bodies_apart() -> None:
    assert fingerprint(b"x") == fingerprint(b"x") != fingerprint(b"y")
    assert fingerprint(b"").isascii()
