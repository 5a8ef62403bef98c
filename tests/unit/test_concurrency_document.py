"""docs/concurrency.md claims nothing without a test, and no test that is not there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "concurrency.md"
NAMED = re.compile(r"`(tests/[a-z_/]+\.py)::(test_\w+)`")


def claims(text: str) -> list[str]:
    """The points of the lists, each as one line."""
    points = re.findall(r"^- (.*?)(?=^- |^#|^$|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return [" ".join(point.split()) for point in points]


def names_in(path: Path) -> set[str]:
    if not path.exists():
        return set()
    module = ast.parse(path.read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(module) if isinstance(node, functions)}


def test_every_claim_names_its_test() -> None:
    found = claims(DOCUMENT.read_text("utf-8"))
    assert len(found) >= 20
    assert [claim for claim in found if not NAMED.search(claim)] == []


def test_every_test_that_is_named_exists() -> None:
    named = NAMED.findall(DOCUMENT.read_text("utf-8"))
    missing = [f"{path}::{name}" for path, name in named if name not in names_in(ROOT / path)]
    assert missing == []


def test_a_claim_without_a_test_and_a_test_that_is_not_there_would_be_seen() -> None:
    assert claims("# A\n\n- one\n  `tests/a.py::test_b`\n- two\n\n## B\n") == [
        "one `tests/a.py::test_b`",
        "two",
    ]
    assert "test_nothing" not in names_in(Path(__file__))
