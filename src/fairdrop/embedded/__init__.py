"""The store and the database as child processes, and the supervisor that keeps children running.

::

    async with StopSignals() as signals:
        async with EmbeddedServices(Path("data")) as services:
            await migrate(services.database_url)
            await services.supervisor.start(gateway, web, worker)   # ChildSpec each
            await signals.wait()

Nothing outlives the block, nor the process if it is killed inside it.
"""

from fairdrop.embedded.background import BackgroundServices, start_services
from fairdrop.embedded.child import ChildSpec, RestartPolicy, listening
from fairdrop.embedded.directories import DataDirectoryInUse, Directories
from fairdrop.embedded.durability import Durability
from fairdrop.embedded.parent_death import die_with_parent
from fairdrop.embedded.ports import free_port, free_ports
from fairdrop.embedded.services import EmbeddedServices, remove_data
from fairdrop.embedded.stop_signals import StopSignals
from fairdrop.embedded.supervisor import ChildNotReady, Supervisor

__all__ = [
    "BackgroundServices",
    "ChildNotReady",
    "ChildSpec",
    "DataDirectoryInUse",
    "Directories",
    "Durability",
    "EmbeddedServices",
    "RestartPolicy",
    "StopSignals",
    "Supervisor",
    "die_with_parent",
    "free_port",
    "free_ports",
    "listening",
    "remove_data",
    "start_services",
]
