"""The turnstile: never more than its width, hurried ones first, nothing lost."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from fairdrop.rehearsal.turnstile import Turnstile


async def test_three_hurried_ones_pass_for_each_of_the_others_and_each_kind_in_order() -> None:
    turnstile = Turnstile(1)
    await turnstile.enter(hurried=False)
    passed: list[str] = []

    async def pass_through(name: str, *, hurried: bool) -> None:
        async with turnstile.passage(hurried=hurried):
            passed.append(name)

    tasks = [
        asyncio.create_task(pass_through(name, hurried=name.startswith("h")))
        for name in ("a", "b", "h1", "c", "h2", "h3", "h4", "h5")
    ]
    await asyncio.sleep(0)
    assert passed == []
    turnstile.leave()
    await asyncio.gather(*tasks)
    assert passed == ["h1", "h2", "h3", "a", "h4", "h5", "b", "c"]


@given(
    width=st.integers(1, 4),
    people=st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.booleans()), max_size=30),
)
def test_no_more_than_its_width_pass_and_no_room_is_lost(
    width: int, people: list[tuple[bool, int, bool]]
) -> None:
    async def run() -> None:
        turnstile = Turnstile(width)
        inside: set[int] = set()

        async def pass_through(number: int, hurried: bool, steps: int) -> None:
            async with turnstile.passage(hurried=hurried):
                inside.add(number)
                assert len(inside) <= width
                try:
                    for _ in range(steps):
                        await asyncio.sleep(0)
                finally:
                    inside.discard(number)

        tasks = [
            asyncio.create_task(pass_through(number, hurried, steps))
            for number, (hurried, steps, _) in enumerate(people)
        ]
        await asyncio.sleep(0)
        for task, (_, _, gives_up) in zip(tasks, people, strict=True):
            if gives_up:
                task.cancel()
                await asyncio.sleep(0)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(result) for result in results} <= {type(None), asyncio.CancelledError}
        async with asyncio.timeout(5):
            for _ in range(width):
                await turnstile.enter(hurried=False)

    asyncio.run(run())


async def test_room_given_to_somebody_who_gives_up_at_that_moment_is_not_lost() -> None:
    turnstile = Turnstile(1)
    await turnstile.enter(hurried=True)
    waiting = asyncio.create_task(turnstile.enter(hurried=True))
    await asyncio.sleep(0)
    turnstile.leave()
    waiting.cancel()
    await asyncio.wait([waiting])
    async with asyncio.timeout(5):
        await turnstile.enter(hurried=False)
