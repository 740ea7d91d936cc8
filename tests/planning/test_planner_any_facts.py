"""What holds of every plan, tried on random facts."""

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.asking import sample
from tests.planning.situations import (
    DAY,
    NOW,
    OPEN_IN_ORDER,
    Row,
    carry_out,
    of_kind,
    summary,
)
from timeline.definition import Timeline, task
from timeline.lifecycle import FINAL, LEASED, OPEN, ReasonCode, State
from timeline.planning import Create, Keep, plan
from timeline.timing import after, at, before


class TestAnyFacts:
    """Whatever the definition and the rows are: one plan is enough, and it leaves no row in doubt."""

    def definition(self, rng):
        """A timeline of one to seven tasks; follow-ups hang on earlier ones with a schedule, some before them."""
        body, scheduled = {"entity": "testapp.Order"}, []
        for number in range(rng.randint(1, 7)):
            days = rng.randint(0, 3)
            kinds = [after(days=days), before("a_at", days=days + 1), at("a_at"), after("b_at", hours=days)]
            if scheduled:
                kinds += [after(rng.choice(scheduled), days=days)] * 4
            expires = rng.choice([None, timedelta(days=1)])

            def method(self, order):
                return None

            method.__name__ = f"t{number}"
            declared = task(rng.choice([*kinds, None]), expires=expires)(method)
            body[declared.name] = declared
            scheduled += [declared] if declared.when else []
        names = [name for name in body if name != "entity"]
        rng.shuffle(names)
        return type("Drawn", (Timeline,), {"entity": body["entity"], **{name: body[name] for name in names}})

    def instant(self, rng):
        """One of a few, so that the same comes up again."""
        return NOW + rng.randint(-4, 4) * DAY

    def rows(self, rng, definition):
        """Up to three revisions a task, of which only the latest may be open; some of tasks that are gone."""
        made = []
        for name in [*definition.tasks, "gone"]:
            count = rng.choice([0, 0, 1, 1, 2, 3])
            for revision in range(1, count + 1):
                state = rng.choice(list(State) if revision == count else sorted(FINAL))
                codes = [ReasonCode.DONE] if state == State.COMPLETED else sorted(set(ReasonCode) - {ReasonCode.DONE})
                nominal = self.instant(rng)
                made.append(
                    Row(
                        name,
                        state,
                        revision,
                        nominal,
                        rng.choice([nominal, self.instant(rng)]),
                        rng.choice([nominal, self.instant(rng)]),
                        finished_at=min(self.instant(rng), NOW) if state in FINAL else None,
                        reason_code=rng.choice(codes) if state in FINAL else "",
                        anchor_date=rng.choice([None, self.instant(rng).date()]),
                    )
                )
        rng.shuffle(made)
        return made

    def facts(self, seed):
        rng = random.Random(seed)  # noqa: S311 (draws examples)
        cls = self.definition(rng)
        rows = self.rows(rng, cls.definition)
        leased = [row.id for row in rows if row.state in LEASED]
        return rows, {
            "definition": cls.definition,
            "started_at": self.instant(rng),
            "anchors": {name: rng.choice([None, self.instant(rng), self.instant(rng)]) for name in ("a_at", "b_at")},
            "dates": {"b_at": self.instant(rng).date()} if rng.random() < 0.3 else {},
            "zone": rng.choice([UTC, ZoneInfo("Europe/Berlin")]),
            "now": NOW,
            "spare": set(rng.sample(leased, rng.randint(0, min(1, len(leased))))),
        }

    @pytest.mark.parametrize("seed", sample(range(20), 4))
    def test_need_one_plan_only(self, seed):
        """Carried out and planned again, there is nothing left to do; also a third time."""
        for number in range(100):
            rows, facts = self.facts(f"{seed}/{number}")

            first = plan(rows=rows, **facts)
            rows = carry_out(first, rows)
            second = plan(rows=rows, **facts)

            assert {type(change) for change in second.changes} <= {Keep}
            assert (second.foreseen, second.open) == (first.foreseen, first.open)
            assert plan(rows=carry_out(second, rows), **facts) == second

    @pytest.mark.parametrize("seed", sample(range(20), 4))
    def test_need_one_plan_only_at_each_step_of_a_life(self, seed):
        """Time passes, fields change, tasks end this way or that; each time one plan settles it."""
        for number in range(20):
            rng = random.Random(f"life {seed}/{number}")  # noqa: S311 (draws examples)
            definition, rows, now = self.definition(rng).definition, [], NOW
            anchors = {"a_at": self.instant(rng), "b_at": None}
            for _ in range(12):
                dates = {"b_at": anchors["b_at"].date()} if anchors["b_at"] else {}
                facts = {"started_at": NOW, "anchors": anchors, "dates": dates, "zone": UTC, "now": now}

                first = plan(definition, rows=rows, **facts)
                rows = carry_out(first, rows, now=now)
                second = plan(definition, rows=rows, **facts)

                assert {type(change) for change in second.changes} <= {Keep}
                assert (second.foreseen, second.open) == (first.foreseen, first.open)
                now += rng.choice([0, 1, 24, 72]) * timedelta(hours=1)
                anchors = {**anchors, rng.choice(["a_at", "b_at", "other"]): rng.choice([None, self.instant(rng)])}
                rows = [self.lived(rng, row, now) for row in rows]

    def lived(self, rng, row, now):
        """The row a little later: as it was, further on its way, or ended."""
        if row.state not in OPEN or rng.random() < 0.4:
            return row
        state = rng.choice([*OPEN_IN_ORDER, *[State.COMPLETED] * 4, State.DISCARDED, State.CANCELLED])
        code = {State.COMPLETED: ReasonCode.DONE, State.DISCARDED: ReasonCode.ERROR}.get(
            state, rng.choice([ReasonCode.GUARD, ReasonCode.OPERATOR, ReasonCode.EXPIRED])
        )
        if state in OPEN:
            return replace(row, state=state)
        return replace(row, state=state, finished_at=now, reason_code=code)

    @pytest.mark.parametrize("seed", sample(range(10), 2))
    def test_are_answered_alike_in_any_order_of_rows(self, seed):
        for number in range(50):
            rows, facts = self.facts(f"{seed}/{number}")
            known = {row.id for row in rows}

            planned, turned = plan(rows=rows, **facts), plan(rows=rows[::-1], **facts)

            assert (planned.foreseen, planned.open) == (turned.foreseen, turned.open)
            assert sorted(summary(planned)) == sorted(summary(turned))
            assert known == {row.id for row in rows}

    @pytest.mark.parametrize("seed", sample(range(10), 2))
    def test_leave_one_answer_for_each_open_row_and_one_open_row_for_each_task(self, seed):
        for number in range(50):
            rows, facts = self.facts(f"{seed}/{number}")

            planned = plan(rows=rows, **facts)

            answered = Counter(change.row.id for change in planned.changes if not isinstance(change, Create))
            assert set(answered.values()) <= {1}
            assert {row.id for row in rows if row.state in OPEN} <= set(answered)
            open_after = Counter(row.task_name for row in carry_out(planned, rows) if row.state in OPEN)
            assert set(open_after.values()) <= {1}

    @pytest.mark.parametrize("seed", sample(range(10), 2))
    def test_are_continued_by_the_next_revision_of_the_latest_row(self, seed):
        for number in range(50):
            rows, facts = self.facts(f"{seed}/{number}")
            latest = {row.task_name: row for row in sorted(rows, key=lambda row: row.revision)}

            for change in of_kind(plan(rows=rows, **facts), Create):
                before_it = latest.get(change.task_name)

                assert change.revision == (before_it.revision + 1 if before_it else 1)
                assert change.previous == (before_it.id if before_it else None)

    @pytest.mark.parametrize("seed", sample(range(10), 2))
    def test_hold_the_run_open_whenever_a_row_is_or_one_is_foreseen(self, seed):
        for number in range(50):
            rows, facts = self.facts(f"{seed}/{number}")

            planned = plan(rows=rows, **facts)

            left_open = [row for row in carry_out(planned, rows) if row.state in OPEN]
            waits = any(value is None for value in facts["anchors"].values())
            if left_open or planned.foreseen:
                assert planned.open
            elif not waits:
                assert not planned.open
