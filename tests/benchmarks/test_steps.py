"""Steps a second: the command line, the ratios, and the whole at a size that shows that it works and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.steps.plan import GOALS, KINDS, PEERS, Plan, parse
from benchmarks.steps.report import ratios, show

REQUIREMENTS = Path(__file__).parents[2] / "benchmarks" / "peers" / "requirements"


@pytest.fixture
def results():
    """Figures of two rounds, ours and the ceiling; another peer could not be had."""
    about = {"title": "Ours", "package": "ours", "version": "1.2", "slots": 1, "settings": [], "notes": "All."}
    return {
        "machine": {"CPUs": "2"},
        "rounds": 2,
        "peers": {
            "timeline": {**about, "steps_a_second": {"steps": [900.0, 450.0]}, "miscounted": []},
            "raw": {
                **about,
                "title": "Raw",
                "steps_a_second": {"steps": [1000.0, 1000.0]},
                "miscounted": [{"job": "step_updates"}],
            },
        },
        "left_out": {"dbos": "could not be installed"},
        "bytes_of_a_record": [300.0, 310.0],
    }


class TestParse:
    def test_means_all_of_it_where_nothing_is_said(self):
        assert parse([]) == Plan(peers=tuple(PEERS), kinds=tuple(KINDS))

    def test_takes_what_is_said(self, tmp_path):
        file = tmp_path / "figures.json"

        plan = parse(
            ["--only", "raw,timeline", "--kinds", "steps", "--tasks", "1_000", "--rounds", "2", "--json", str(file)]
        )

        assert plan == Plan(peers=("raw", "timeline"), kinds=("steps",), tasks=1000, rounds=2, output=file)

    @pytest.mark.parametrize("wrong", [["--only", "nobody"], ["--kinds", "none"], ["--tasks", "0"], ["--rounds", "x"]])
    def test_refuses_what_it_does_not_know(self, wrong, capsys):
        with pytest.raises(SystemExit):
            parse(wrong)

        assert wrong[0] in capsys.readouterr().err

    def test_knows_what_each_of_the_others_needs(self):
        assert all((REQUIREMENTS / f"{name}.txt").exists() for _, name in PEERS.values() if name)


class TestRatios:
    def test_compares_what_was_measured_in_the_same_round(self, results):
        [wanted] = [goal for goal in GOALS if (goal.what, goal.than) == (("timeline", "steps"), ("raw", "steps"))]

        assert ratios(results, wanted) == [0.9, 0.45]

    def test_has_none_where_somebody_was_left_out(self, results):
        assert [ratios(results, wanted) for wanted in GOALS if "dbos" in (wanted.what[0], wanted.than[0])] == [[], []]


class TestShow:
    def test_says_what_is_met_and_who_is_left_out(self, results, capsys):
        show(results)

        said = capsys.readouterr().out
        assert "675 (450–900)" in said
        assert "0.68 (0.45–0.90)" in said
        assert "dbos is left out: could not be installed" in said
        assert "Raw wrote what it did not record" in said


class TestSteps:
    def test_measures_ours_and_the_same_records_by_hand(self, benchmark, tmp_path):
        output = tmp_path / "figures.json"
        small = ["--only", "timeline,raw", "--tasks", "300", "--rounds", "1", "--shortest", "0.05"]

        done = benchmark(*small, "--json", str(output), module="benchmarks.steps")

        assert done.returncode == 0, done.stderr
        found = json.loads(output.read_text(encoding="utf-8"))
        assert (list(found["peers"]), found["left_out"]) == (["timeline", "raw"], {})
        assert {name: set(peer["steps_a_second"]) for name, peer in found["peers"].items()} == {
            "timeline": {"steps", "step_updates", "steps_async"},
            "raw": {"steps", "step_updates"},
        }
        assert all(peer["miscounted"] == [] for peer in found["peers"].values())
        assert 100 < found["bytes_of_a_record"][0] < 1000
