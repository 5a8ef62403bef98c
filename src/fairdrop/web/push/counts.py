"""What the push process counts, and how Prometheus is told (S5)."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from fairdrop.web.tally import BOUNDS_S, Tally

from .listener import Form

if TYPE_CHECKING:
    from prometheus_client import Metric


class Counts:
    """Plain numbers of one process."""

    def __init__(self) -> None:
        """Nothing happened yet."""
        self.open = dict.fromkeys(Form, 0)
        self.sent = dict.fromkeys(Form, 0)
        self.dropped = 0
        self.refused = 0
        self.replaced = 0
        self.fan_outs = Tally()

    def families(self) -> list[Metric]:
        """The numbers as metrics."""
        sockets = GaugeMetricFamily("fairdrop_push_streams", "Streams open now", labels=["form"])
        sent = CounterMetricFamily("fairdrop_push_messages", "Messages sent", labels=["form"])
        for form in Form:
            sockets.add_metric([form.value], self.open[form])
            sent.add_metric([form.value], self.sent[form])
        fan_out = HistogramMetricFamily(
            "fairdrop_push_fan_out_seconds",
            "From a change in hand to its last listener's socket",
            buckets=[
                (bound, float(count))
                for bound, count in zip(
                    [*map(str, BOUNDS_S), "+Inf"], accumulate(self.fan_outs.counts), strict=True
                )
            ],
            sum_value=self.fan_outs.seconds,
        )
        return [
            sockets,
            sent,
            fan_out,
            CounterMetricFamily(
                "fairdrop_push_dropped", "Streams dropped for slow readers", value=self.dropped
            ),
            CounterMetricFamily(
                "fairdrop_push_refused", "Streams refused at the limit", value=self.refused
            ),
            CounterMetricFamily(
                "fairdrop_push_replaced",
                "Documents that a newer one replaced before they were sent",
                value=self.replaced,
            ),
        ]
