"""``python -m fairdrop.notifications.sink``: run the mail sink in this process."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from pathlib import Path


def main() -> int:
    """Serve until a signal; 0 after a clean stop, 1 (and one line why) if it cannot start."""
    if os.environ.get("FAIRDROP_PARENT_DEATH") == "1":
        # Only a supervised child needs it.
        from fairdrop.embedded.parent_death import die_with_parent  # noqa: PLC0415

        die_with_parent()
    logging.basicConfig(level=logging.WARNING)
    parser = argparse.ArgumentParser(prog="python -m fairdrop.notifications.sink")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--smtp-port", type=int, required=True, help="where mails come in")
    parser.add_argument("--http-port", type=int, required=True, help="where they can be read")
    parser.add_argument("--data-dir", type=Path, required=True, help="where they are kept")
    options = parser.parse_args()
    import uvloop  # noqa: PLC0415 - --help needs no server to be loaded

    from .server import serve  # noqa: PLC0415 - the same

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(options.host, options.smtp_port, options.http_port, options.data_dir))
    except OSError as error:
        print(f"mail sink: {error}", file=sys.stderr)  # noqa: T201 - for who started it
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
