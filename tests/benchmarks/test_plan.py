"""The command line of the comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.comparing.measuring import CANCELS, amid
from benchmarks.comparing.plan import OURS, OUTPUT, PEERS, Plan, parse
from benchmarks.peers.timeline_site import USERS
from benchmarks.steps import plan as steps

REQUIREMENTS = Path(__file__).parents[2] / "benchmarks" / "peers" / "requirements"


class TestParse:
    def test_means_all_of_it_where_nothing_is_said(self, monkeypatch):
        monkeypatch.delenv("REDIS_URL", raising=False)

        plan = parse([])

        assert plan == Plan()
        assert (plan.peers, plan.output) == (PEERS, OUTPUT)

    def test_means_ours_and_no_page_where_it_is_to_be_quick(self):
        plan = parse(["--quick"])

        assert (plan.peers, plan.runs, plan.output) == (OURS, 1, None)

    def test_lets_the_other_arguments_overrule_quick(self):
        plan = parse(["--quick", "--runs", "2", "--sizes", "20_000,1000", "--output", "x.json"])

        assert (plan.runs, plan.sizes, plan.output) == (2, (1000, 20_000), Path("x.json"))

    def test_makes_no_page_of_some_peers(self):
        assert parse(["--only", "oban,raw_sql"]).output is None

    def test_makes_no_page_of_drains_that_are_to_be_shown_beside_it(self):
        plan = parse(["--beside", "On a busy machine."])

        assert (plan.output, plan.beside) == (None, "On a busy machine.")

    def test_takes_peers_in_the_order_given(self):
        assert parse(["--only", "oban,raw_sql"]).peers == ("oban", "raw_sql")

    def test_takes_jobs_with_their_number(self):
        assert parse(["--jobs", "nothing=20,long=3"]).jobs == (("nothing", 20), ("long", 3))

    def test_takes_the_broker_from_the_environment(self, monkeypatch):
        monkeypatch.setenv("REDIS_URL", "redis://there:1/2")

        assert parse([]).broker == "redis://there:1/2"

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--only", "nobody"],
            ["--runs", "0"],
            ["--sizes", "many"],
            ["--seconds", "1"],
            ["--jobs", "sing=3"],
            ["--jobs", "long"],
        ],
        ids=" ".join,
    )
    def test_refuses_what_it_does_not_know(self, arguments, capsys):
        with pytest.raises(SystemExit):
            parse(arguments)

        assert arguments[0] in capsys.readouterr().err


class TestPeers:
    @pytest.mark.parametrize("name", PEERS)
    def test_have_an_adapter(self, name):
        assert (REQUIREMENTS.parent / f"{name}.py").exists()

    def test_have_their_requirements_within_bounds(self):
        found = {file.stem: file.read_text(encoding="utf-8") for file in REQUIREMENTS.glob("*.txt")}

        of_steps = {taking.environment for taking in steps.PEERS.values() if taking.environment}
        assert set(found) == (set(PEERS) - set(OURS)) | of_steps
        lines = [line for text in found.values() for line in text.splitlines() if not line.startswith("#")]
        assert [line for line in lines if "<" not in line or ">=" not in line] == []


class TestWhoseJobsAreCalledOff:
    def test_is_nobody_twice(self):
        """Ours has fewer accounts than the rows have entities; a number stands for the same account again and again."""
        asked = [
            (amid(size, at) + number) % USERS for at, size in enumerate(Plan.sizes) for number in range(CANCELS + 1)
        ]

        assert len(set(asked)) == len(asked) == 24

    def test_is_somebody_with_rows(self):
        assert all(10 * (amid(size, at) + CANCELS) < size for at, size in enumerate(Plan.sizes))
