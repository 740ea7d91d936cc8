"""What errors say and carry."""

import ast
import inspect
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polib
import pytest
from django.conf import settings
from django.utils import translation

from timeline import exceptions
from timeline.exceptions import (
    AlreadyDecided,
    AlreadyOpen,
    AlreadyReleased,
    AlreadyTaken,
    BrokerUnavailable,
    Cancel,
    ChangedSince,
    DateOutOfRange,
    DecidedTooLate,
    DefinitionError,
    Discard,
    HandlerSignal,
    InvalidInput,
    KeyConflict,
    KeyReused,
    LabelsCollide,
    LeaseLost,
    MoveNotAllowed,
    MovesTooOften,
    NaiveDatetime,
    NoAutocommit,
    NoOpenRun,
    NotPlainJSON,
    NotRunHere,
    PayloadTooLarge,
    RateLimited,  # of rates
    Refusal,
    RetryAfter,
    RunEnded,
    StateMoved,
    TimedOut,
    TimelineError,
    TransitionNotAllowed,
    UnknownEvent,
    UnknownMachineEvent,
    UnknownTask,
    UnknownTimeline,
    UnreadableEntity,
    WorkerLost,
    WrongEntity,
    WrongIsolation,
    WrongSite,
)

CLASSES = [value for value in vars(exceptions).values() if inspect.isclass(value)]
ERRORS = [kind for kind in CLASSES if issubclass(kind, Exception) and not issubclass(kind, Warning)]

BASES = {TimelineError, NotRunHere, Refusal, HandlerSignal}

# What people are shown, one of each class.
SHOWN = [
    InvalidInput("reason", "is too short.", "Say more."),
    NaiveDatetime("at"),
    DateOutOfRange("at", "9001"),
    NotPlainJSON("payload", "has a set."),
    PayloadTooLarge("result", 70000, 65536),
    UnknownTimeline("trail", ["trial"]),
    UnknownEvent("user.craeted", "accounts.user", ["user.created"], ["", "shop.client"]),
    UnknownTask("a.b", []),
    WrongEntity("is an Order.", "Give a User."),
    KeyConflict("user.created", "k1", "payload"),
    KeyReused(),
    LabelsCollide("shop.client", "accounts.user", "open runs", ["1", "2"]),
    TransitionNotAllowed("completed", "cancel", "Redrive it.", task="T1"),
    TransitionNotAllowed("completed", "cancel", "Redrive it."),
    MoveNotAllowed("booking", "shop.order 1", "BOOKED", "input.ok", [], ended=True),
    MoveNotAllowed("booking", "", "QUEUED", "otp.given", ["portal.open"]),
    MoveNotAllowed("booking", "shop.order 1", "QUEUED", "otp.given", [], expected="SEARCHING"),
    MoveNotAllowed("booking", "shop.order 1", "PARKED", "otp.given", []),
    MovesTooOften("booking", "shop.order 1", 1000, "auth.ok"),
    StateMoved("shop.order 1", "BOOKED", "QUEUED"),
    StateMoved("shop.order", "BOOKED", "CREATED", is_new=True),
    UnknownMachineEvent("booking", "otp.givn", ["otp.given"], ["otp.given"]),
    NoOpenRun("trial", "accounts.user 1", "k"),
    RunEnded("T1", "paid"),
    AlreadyOpen("T1"),
    AlreadyDecided("T1", "refund.approved", "ada", datetime(2026, 3, 1, tzinfo=UTC)),
    DecidedTooLate("T1", datetime(2026, 3, 1, tzinfo=UTC)),
    AlreadyTaken("R1", "ada", datetime(2026, 3, 1, tzinfo=UTC)),
    AlreadyReleased("H1", datetime(2026, 3, 1, tzinfo=UTC)),
    ChangedSince("T1", "scheduled", datetime(2026, 3, 1, tzinfo=UTC), seq=3, actor="ben", reason="private"),
    NoAutocommit("default"),
    UnreadableEntity("accounts.user 1", "ValueError: the key is lost"),
    WrongIsolation("serializable", "default"),
    WrongSite("staging", "production", "default"),
    WrongSite("", "", "default"),
]
# What only developers and logs meet.
ENGLISH = [
    DefinitionError("Trial", "is async.", "Use def."),
    LeaseLost("T1", 3),
    TimedOut("T1", 3, timedelta(minutes=2)),
    WorkerLost("T1", 3),
    BrokerUnavailable(OSError("refused")),
]
# What handlers say in their own words.
FREE = {Cancel, Discard, RetryAfter}
FREE |= {RateLimited}  # of rates


class TestLanguages:
    def test_every_class_is_looked_at_here(self):
        assert {type(error) for error in [*SHOWN, *ENGLISH]} | FREE | BASES == set(ERRORS)

    @pytest.mark.parametrize("error", SHOWN, ids=lambda error: type(error).__name__)
    def test_what_people_are_shown_is_told_in_the_present_language(self, error):
        plain = {InvalidInput, WrongEntity}  # Both sentences are given to them.
        in_english = str(error)

        with translation.override("de"):
            assert (str(error) == in_english) == (type(error) in plain)
            assert error.in_english() == in_english
            assert translation.get_language() == "de"

    @pytest.mark.parametrize("kind", [kind for kind in ERRORS if kind.message], ids=lambda kind: kind.__name__)
    def test_every_message_is_in_the_catalogue_or_for_developers(self, kind):
        catalogue = polib.pofile(str(Path(settings.BASE_DIR) / "timeline/locale/de/LC_MESSAGES/django.po"))

        known = {entry.msgid for entry in catalogue if entry.translated()}

        assert (str(kind.message) in known) == (kind not in {type(error) for error in ENGLISH})

    @pytest.mark.parametrize("error", ENGLISH, ids=lambda error: type(error).__name__)
    def test_what_developers_meet_stays_in_english(self, error):
        in_english = str(error)

        with translation.override("de"):
            assert str(error) == in_english

    def test_numbers_are_written_as_readers_write_them(self):
        with translation.override("de"):
            assert str(PayloadTooLarge("result", 70000, 65536)).startswith("result: hat 70.000 Bytes JSON")

    def test_states_and_triggers_are_called_what_they_are_called_elsewhere(self):
        with translation.override("de"):
            assert str(TransitionNotAllowed("completed", "cancel", "–")) == (
                "state: eine Aufgabe ist im Zustand „erledigt“, der „absagen“ nicht zulässt. –"
            )

    def test_sentences_without_values_are_taken_as_they_are(self):
        assert str(InvalidInput("share", "is over 100%.", "Stay below.")) == "share: is over 100%. Stay below."

    @pytest.mark.parametrize("error", SHOWN, ids=lambda error: type(error).__name__)
    def test_survives_a_pickle(self, error):
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 (just written)

        assert (type(again), str(again)) == (type(error), str(error))

    def test_no_sentence_is_raised_untranslated(self):
        """A sentence given to an error that people are shown goes through gettext: it is no bare text with blanks."""
        shown = {type(error).__name__ for error in SHOWN}
        bare = []
        for file in sorted((Path(settings.BASE_DIR) / "timeline").rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in shown:
                    bare += [(file.name, given.lineno) for given in node.args if _is_sentence(given)]

        assert bare == []


def _is_sentence(node):
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
    )


class TestTimelineError:
    @pytest.mark.parametrize("error", ERRORS)
    def test_is_the_base_of_all(self, error):
        assert issubclass(error, TimelineError)
        assert error.__doc__


class TestDefinitionError:
    def test_names_class_method_problem_and_remedy(self):
        error = DefinitionError("Trial", "is async.", "Declare it with def.", "remind")

        assert str(error) == "Trial.remind: is async. Declare it with def."
        assert (error.timeline, error.method) == ("Trial", "remind")
        assert (error.problem, error.remedy) == ("is async.", "Declare it with def.")

    def test_names_the_class_alone_where_no_method_is_to_blame(self):
        assert str(DefinitionError("Trial", "declares no task.", "Add one.")) == "Trial: declares no task. Add one."


class TestInvalidInput:
    @pytest.mark.parametrize(
        ("error", "field", "text"),
        [
            (NaiveDatetime("at"), "at", "at: has no time zone. Give an aware datetime"),
            (DateOutOfRange("at", "9001"), "at", "at: 9001 is outside the years 1970 to 9000. Give a date within"),
            (NotPlainJSON("payload", "has a set."), "payload", "payload: has a set. Use only dict (text keys), list"),
            (PayloadTooLarge("result", 70000, 65536), "result", "result: is 70,000 bytes of JSON, over 65,536."),
            (
                UnknownTimeline("trail", ["trial", "zoo"]),
                "timeline",
                "timeline: 'trail' is not registered. Did you mean 'trial'? Known: trial, zoo.",
            ),
            (UnknownTimeline("trail", []), "timeline", "timeline: 'trail' is not registered. Known: none."),
            (UnknownTask("a.b", ["a.c", "a.d"]), "task_key", "task_key: 'a.b' is not registered. Known: a.c, a.d."),
            (UnknownTask("a.b", []), "task_key", "task_key: 'a.b' is not registered. Known: none."),
            (WrongEntity("is an Order.", "Give a User."), "entity", "entity: is an Order. Give a User."),
            (KeyConflict("user.created", "k1", "payload"), "key", "key: 'k1' was used for user.created before"),
        ],
    )
    def test_names_the_field_the_problem_and_the_remedy(self, error, field, text):
        assert isinstance(error, InvalidInput)
        assert error.field == field
        assert str(error).startswith(text)
        assert str(error) == f"{error.field}: {error.problem} {error.remedy}"

    def test_carries_what_it_is_about(self):
        assert (PayloadTooLarge("result", 70000, 65536).size, PayloadTooLarge("result", 70000, 65536).limit) == (
            70000,
            65536,
        )
        assert UnknownTimeline("trail", []).name == "trail"
        assert UnknownTask("a.b", []).task_key == "a.b"
        assert DateOutOfRange("at", "9001").value == "9001"
        assert (KeyConflict("user.created", "k1", "payload").name, KeyConflict("e", "k1", "payload").key) == (
            "user.created",
            "k1",
        )


class TestTransitionNotAllowed:
    def test_says_what_was_tried_where_and_what_to_do(self):
        error = TransitionNotAllowed("completed", "cancel", "Redrive it.", task="T1")

        assert str(error) == "state: task T1 is completed, which allows no 'cancel'. Redrive it."
        assert (error.state, error.trigger, error.task, error.remedy) == ("completed", "cancel", "T1", "Redrive it.")

    def test_is_no_invalid_input(self):
        """The same input may be right at another time."""
        assert not issubclass(TransitionNotAllowed, InvalidInput)


class TestOfRowsAndRuns:
    def test_name_what_they_are_about(self):
        assert str(NoOpenRun("trial", "accounts.user 1", "k")) == (
            "timeline: accounts.user 1 has no open run of 'trial' (key 'k'). Start one first."
        )
        assert str(RunEnded("T1", "paid")) == "run: the run of task T1 has ended. Start a new run instead."
        assert str(AlreadyOpen("T1")).startswith("task: T1 is open already. Move, run or cancel it")
        assert str(LeaseLost("T1", 3)).startswith("attempt 3 of task T1 is not ours any more")

    def test_name_labels_and_entities(self):
        error = LabelsCollide("shop.client", "accounts.user", "open runs", ["1", "2"])

        assert str(error).startswith("new: shop.client and accounts.user both have the same open runs of 1, 2. End or")
        assert (error.old, error.new, error.what, error.ids) == (
            "shop.client",
            "accounts.user",
            "open runs",
            ["1", "2"],
        )

    def test_carry_it_too(self):
        assert (NoOpenRun("trial", "user 1", "k").timeline, NoOpenRun("trial", "user 1", "k").entity) == (
            "trial",
            "user 1",
        )
        assert (RunEnded("T1", "paid").task, RunEnded("T1", "paid").end_reason) == ("T1", "paid")
        assert (LeaseLost("T1", 3).task, LeaseLost("T1", 3).attempt) == ("T1", 3)
        assert AlreadyOpen("T1").task == "T1"
        assert AlreadyReleased("H1", datetime(2026, 3, 1, tzinfo=UTC)).hold == "H1"


class TestHandlerSignal:
    @pytest.mark.parametrize("signal", [Cancel, Discard])
    def test_carries_the_reason_as_text(self, signal):
        error = signal(404)

        assert isinstance(error, HandlerSignal)
        assert (error.reason, error.args) == ("404", ("404",))


class TestRetryAfter:
    @pytest.mark.parametrize("delay", [timedelta(0), timedelta(minutes=5), timedelta(days=3653)])
    def test_takes_a_delay_from_nothing_to_ten_years(self, delay):
        assert RetryAfter(delay).delay == delay

    @pytest.mark.parametrize("delay", [timedelta(microseconds=-1), timedelta(days=3653, seconds=1), 60, None, "60"])
    def test_refuses_any_other(self, delay):
        with pytest.raises(ValueError, match="give a timedelta from 0 to ten years"):
            RetryAfter(delay)

    def test_keeps_the_reason(self):
        error = RetryAfter(timedelta(minutes=5), "rate limit")

        assert (error.reason, str(error)) == ("rate limit", "rate limit")

    def test_has_a_reason_without_one(self):
        assert RetryAfter(timedelta(minutes=5)).reason == "asked to be retried in 0:05:00"


class TestLongNames:
    @pytest.mark.parametrize(
        "error",
        [
            UnknownTimeline("x" * 1_000_000, ["trial"]),
            UnknownTask("x" * 1_000_000, ["trial.remind"]),
            UnknownEvent("x" * 1_000_000, "y" * 1_000_000, ["user.created"], []),
            UnknownMachineEvent("booking", "x" * 1_000_000, [], ["otp.given"]),
            InvalidInput("reason", "%(value)r is not allowed.", "Give less.", value="x" * 1_000_000),
        ],
        ids=lambda error: type(error).__name__,
    )
    def test_are_not_repeated_in_full(self, error):
        said = str(error)

        assert len(said) < 3_000
        assert "xxx…" in said
