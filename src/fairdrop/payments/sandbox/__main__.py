"""``python -m fairdrop.payments.sandbox``: run the sandbox gateway in this process.

Prints one line, ``ready http://HOST:PORT``, once it answers requests.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable

from fairdrop.errors import FairdropError

from .settings import read_settings

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def main() -> int:
    """Serve until a signal; 0 after a clean stop, 1 (and one line why) if it cannot start."""
    if os.environ.get("FAIRDROP_PARENT_DEATH") == "1":
        # Only a supervised child needs it.
        from fairdrop.embedded.parent_death import die_with_parent  # noqa: PLC0415

        die_with_parent()
    logging.basicConfig(level=logging.WARNING, format=LOG_FORMAT)
    try:
        settings = read_settings()
        # A refusal of the settings, or --help, needs no server to be loaded.
        from .server import serve  # noqa: PLC0415

        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(serve(settings, _announce))
    except FairdropError as error:
        print(f"sandbox gateway: {error}", file=sys.stderr)  # noqa: T201 - for who started it
        return 1
    return 0


def _announce(address: str) -> None:
    print(f"ready {address}", flush=True)  # noqa: T201 - for who started it


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


if __name__ == "__main__":
    sys.exit(main())
