"""The diagram of docs/order-states.md, drawn from the transition table.

``PYTHONPATH=src python -m tests.unit.checkout.order_states_diagram`` writes it anew.
"""

from __future__ import annotations

from pathlib import Path

from fairdrop.checkout import TRANSITIONS, OrderState

DOCUMENT = Path(__file__).parents[3] / "docs" / "order-states.md"
_FIRST, _LAST = "```mermaid\n", "```\n"


def diagram() -> str:
    """A state diagram in Mermaid's text form: one arrow a pair of states, with all its causes."""
    arrows: dict[tuple[str, str], list[str]] = {
        ("[*]", OrderState.RESERVED): ["start"],
        ("[*]", OrderState.EXPIRED): ["deadline"],
    }
    for (before, cause), after in TRANSITIONS.items():
        arrows.setdefault((before, after), []).append(cause)
    lines = [
        f"    {before} --> {after}: {', '.join(causes)}"
        for (before, after), causes in arrows.items()
    ]
    left = {before for before, _ in TRANSITIONS}
    lines += [f"    {state} --> [*]" for state in OrderState if state not in left]
    return "\n".join(["stateDiagram-v2", *lines, ""])


def with_diagram(text: str) -> str:
    """The document with its one diagram replaced."""
    before, rest = text.split(_FIRST)
    after = rest.split(_LAST, 1)[1]
    return before + _FIRST + diagram() + _LAST + after


if __name__ == "__main__":
    DOCUMENT.write_text(with_diagram(DOCUMENT.read_text("utf-8")), "utf-8")
