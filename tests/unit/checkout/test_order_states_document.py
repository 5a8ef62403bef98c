"""docs/order-states.md says what the transition table says."""

from __future__ import annotations

import re

from fairdrop.checkout import Cause, OrderState
from tests.unit.checkout.order_states_diagram import DOCUMENT, with_diagram


def test_the_diagram_in_the_docs_is_drawn_from_the_table_in_the_code() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert text == with_diagram(text), (
        "run: PYTHONPATH=src python -m tests.unit.checkout.order_states_diagram"
    )


def test_the_docs_explain_each_state_and_each_cause() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    assert rows == [*OrderState, *Cause]
