"""``fairdrop up``: everything on one machine, until Ctrl-C."""

from __future__ import annotations

from contextlib import AsyncExitStack

from rich.console import Console

from fairdrop.embedded import StopSignals
from fairdrop.settings import Settings
from fairdrop.site import SECRETS_FILE, Site


async def run_up(settings: Settings) -> None:
    """Start the site, say where it is, and keep it running."""
    console = Console()
    async with StopSignals() as signals, AsyncExitStack() as stack:
        with console.status("Starting Valkey, PostgreSQL, the gateway and the web workers"):
            site = await stack.enter_async_context(Site(settings))
        console.print("Fairdrop is up.")
        console.print(f"  Shop      {site.url}/")
        console.print(f"  Console   {site.url}/console")
        console.print(f"  API       {site.url}/docs")
        console.print(f"  Gateway   {site.gateway_url}  (sandbox, no real money)")
        if site.mail_url is not None:
            console.print(f"  Mails     {site.mail_url}  (kept here, none is sent on)")
        console.print(f"  Data      {site.data_dir}")
        console.print(f"  API key   admin_key in {site.data_dir / SECRETS_FILE}", soft_wrap=True)
        console.print("Stop with Ctrl-C.")
        await signals.wait()
    console.print("Stopped.")
