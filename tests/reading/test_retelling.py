"""What the system wrote on rows, told in the present language."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import translation

from timeline.lifecycle import ReasonCode, State
from timeline.reading.retelling import retold

PACKAGE = Path(settings.BASE_DIR) / "timeline"

# Texts of people, of handlers and of errors: nobody retells those.
FREE = {ReasonCode.OPERATOR, ReasonCode.HANDLER, ReasonCode.GUARD, ReasonCode.ERROR, ReasonCode.DONE}


def text_of(node):
    """A text as the code writes it, with something in each gap."""
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else " X" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def codes_in(node):
    return [
        part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute) and part.attr in ReasonCode.__members__
    ]


def written():
    """(code, text) of each reason that the package's own code writes out."""
    rooms = ("operations", "engine", "dispatch")
    for file in [
        *(file for room in rooms for file in (PACKAGE / room).glob("*.py")),
        PACKAGE / "planning" / "planner.py",
    ]:
        for call in ast.walk(ast.parse(file.read_text())):
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            if name in ("Reason", "cancel"):
                codes = [code for given in call.args for code in codes_in(given)]
                yield from ((ReasonCode[code], text_of(call.args[-1])) for code in codes if text_of(call.args[-1]))
            elif name == "_Outlook":
                texts = [text_of(given.value) for given in call.keywords if given.arg == "why_never"]
                yield from ((ReasonCode.PREDECESSOR, text) for text in texts if text)


WRITTEN = sorted({(code, text) for code, text in written() if code not in FREE})


class TestRetold:
    def test_there_is_something_to_tell(self):
        assert {code for code, _text in WRITTEN} >= {
            ReasonCode.SUPERSEDED,
            ReasonCode.ENTITY_GONE,
            ReasonCode.PREDECESSOR,
            ReasonCode.RELEASED,
            ReasonCode.EXPIRED,
            ReasonCode.WORKER_LOST,
            ReasonCode.SHADOW,
        }

    @pytest.mark.parametrize(("code", "text"), WRITTEN)
    def test_knows_all_that_the_code_writes(self, code, text):
        with translation.override("de"):
            assert retold(code, text) != text

    @pytest.mark.parametrize(("code", "text"), WRITTEN)
    def test_is_what_stands_there_in_english(self, code, text):
        assert retold(code, text) == text

    def test_keeps_what_stands_in_the_gaps(self):
        with translation.override("de"):
            assert retold("moved", "its anchor (field:ends_at) or its schedule changed") == (
                "ihr Anker (field:ends_at) oder ihre Planung hat sich geändert"
            )
            assert retold("predecessor", f"start ended {State.DISCARDED} (error)") == (
                "start endete im Zustand „aufgegeben“ (error)"
            )

    @pytest.mark.parametrize("state", [State.DISCARDED, State.CANCELLED])
    def test_calls_states_what_they_are_called_elsewhere(self, state):
        with translation.override("de"):
            assert retold("predecessor", f"start ended {state} (error)") == (
                f"start endete im Zustand „{state.label}“ (error)"
            )

    @pytest.mark.parametrize(
        ("code", "text"),
        [
            ("", ""),
            ("exit", "paid"),
            ("operator", "the entity was deleted"),
            ("handler", "would have run"),
            ("moved", "the customer asked; its anchor changed"),
            ("error", "finished"),
            ("superseded", ""),
        ],
    )
    def test_leaves_the_words_of_others(self, code, text):
        with translation.override("de"):
            assert retold(code, text) == text
