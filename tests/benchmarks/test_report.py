"""The page and the chart, from figures."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.comparing import report
from benchmarks.comparing.drawing import draw
from benchmarks.comparing.plan import PUBLISHED
from benchmarks.comparing.results import put_beside, read, shown, write

SVG = "{http://www.w3.org/2000/svg}"


class TestPage:
    def test_shows_medians_with_their_spread(self, results):
        assert "| Able & Co | 1,500 (1,000–2,000) | 35,000 (30,000–40,000) |" in report.page(results)

    def test_shows_a_single_value_alone(self, results):
        assert "| Unable | 10.0 | not offered | – | – |" in report.page(results)

    def test_shows_what_a_peer_does_not_offer_at_any_size(self, results):
        assert "| Unable | – | – | not offered |" in report.page(results)

    def test_shows_the_share_of_what_the_slots_allow(self, results):
        assert "25.0, 50% (25.0–25.0)" in report.page(results)

    def test_says_how_many_are_scheduled(self, results):
        assert "Scheduling: 2,000 jobs one by one and 20,000 in bulk" in report.page(results)

    def test_shows_where_the_counters_differ(self, results):
        page = report.page(results)

        assert "| Able & Co | able 1.2, Python 3.12.1 | yes | as completed | Exactly once. |" in page
        assert "| no | 97 for 90 completed |" in page

    def test_names_who_is_left_out_and_why(self, results):
        assert "Left out here: absent (needs Python 3.12 or later, and there is none)." in report.page(results)

    def test_lists_settings_with_their_reason(self, results):
        assert "- Able & Co, `queues`: default:10; as many as it likes." in report.page(results)

    def test_has_as_many_cells_in_each_row_of_a_table(self, results):
        blocks = report.page(results).split("\n\n")
        tables = [block.splitlines() for block in blocks if block.startswith("|")]

        assert len(tables) == 5
        assert [len({line.count("|") for line in table}) for table in tables] == [1] * 5

    def test_names_both_modes_of_ours(self, results):
        page = report.page(results)

        assert "`@task()` with nothing" in page
        assert '`atomic="shared"`' in page

    def test_shows_drains_that_were_measured_by_themselves_with_when_and_how(self, results):
        later = {**results, "plan": {**results["plan"], "jobs": [["entity", 300]]}}
        able = {**results["peers"]["able"], "values": {"schedule_one": [7777.0], "drain.entity.2": [123.0, 125.0]}}

        page = report.page(put_beside(results, {**later, "peers": {"able": able}}, "Others used the machine, too."))

        [said, table, counted] = page[page.index("Measured by themselves on ") :].split("\n\n")[:3]
        assert "2 runs" in said
        assert "300 of *entity by the ORM*): Others used the machine, too." in said
        assert "| Able & Co | 10 | – | 124 (123–125) |" in table
        assert counted == "Counted: Able & Co as completed."
        assert "7,777" not in page

    def test_says_nothing_of_that_where_there_are_none(self, results):
        assert "by themselves" not in report.page(results)


class TestShown:
    def test_makes_the_same_page(self, results):
        results["peers"]["able"]["values"]["drain.long.1"] = [24.86, 25.449, 24.851, 26.0]

        assert report.page(shown(results)) == report.page(results)
        assert draw(shown(results)["peers"]) == draw(results["peers"])

    def test_leaves_out_what_the_page_does_not_show(self, results):
        results["plan"]["seconds"] = 8
        results["peers"]["able"] |= {"clear": "TRUNCATE able", "values": {"poll.1000": [0.5, 0.9, 0.6, 0.7, 0.8]}}

        found = shown(results)

        assert "seconds" not in found["plan"]
        assert "clear" not in found["peers"]["able"]
        assert found["peers"]["able"]["values"] == {"poll.1000": [0.5, 0.7, 0.9]}
        assert found["peers"]["able"]["counted"] == []
        assert found["peers"]["unable"]["counted"] == results["peers"]["unable"]["counted"]

    def test_is_all_that_is_published(self):
        kept = read(PUBLISHED)

        assert shown(kept) == kept


class TestDraw:
    def test_is_a_picture_that_says_what_it_shows(self, results):
        picture = ElementTree.fromstring(draw(results["peers"]))  # noqa: S314 (it is our own)

        assert picture.get("role") == "img"
        assert "Able & Co: 1,600, 850" in picture.find(f"{SVG}desc").text

    def test_draws_bars_as_long_as_the_figures(self, results):
        picture = ElementTree.fromstring(draw(results["peers"]))  # noqa: S314 (it is our own)

        bars = picture.findall(f"{SVG}rect[@height='14']")
        widths = [float(bar.get("width")) for bar in bars]
        assert widths[1] / widths[0] == pytest.approx(850 / 1600, abs=0.01)
        assert widths[2:] == [pytest.approx(widths[0] / 10, abs=0.1), 0.0]

    def test_has_a_bar_for_the_shared_transaction_only_where_there_is_one(self, results):
        results["peers"]["able"]["values"]["drain.shared.2"] = [3200.0]

        picture = ElementTree.fromstring(draw(results["peers"]))  # noqa: S314 (it is our own)

        bars = picture.findall(f"{SVG}rect[@height='14']")
        assert [bar.get("class") for bar in bars] == ["bar0", "bar2", "bar3", "bar0", "bar2"]
        assert float(bars[2].get("width")) == pytest.approx(2 * float(bars[0].get("width")), abs=0.1)

    def test_has_its_words_as_text(self, results):
        picture = ElementTree.fromstring(draw(results["peers"]))  # noqa: S314 (it is our own)

        texts = [text.text for text in picture.findall(f"{SVG}text")]
        assert {"Able & Co", "1,600", "Unable", "not measured", "no-op", "one UPDATE"} <= set(texts)

    def test_keeps_within_its_frame(self, results):
        picture = ElementTree.fromstring(draw(results["peers"]))  # noqa: S314 (it is our own)

        ends = [float(bar.get("x", 0)) + float(bar.get("width")) for bar in picture.findall(f"{SVG}rect")]
        assert max(ends) <= float(picture.get("width"))

    def test_has_colours_for_dark_pages(self, results):
        assert "prefers-color-scheme: dark" in draw(results["peers"])


class TestMain:
    def test_writes_all(self, results, tmp_path):
        write(results, tmp_path / "figures.json")

        report.main(tmp_path / "figures.json", tmp_path)

        written = {file.name: file.read_text(encoding="utf-8") for file in tmp_path.glob("*.md")}
        assert written == report.pages(results)
        assert "## Scheduling" in written["benchmarks.md"]
        assert "## Settings" in written["benchmarks-method.md"]
        assert (tmp_path / "benchmarks.svg").read_text(encoding="utf-8") == draw(results["peers"])

    def test_was_called_after_the_last_measurement(self):
        kept = read(PUBLISHED)

        docs = Path(report.DOCS)
        assert {name: (docs / name).read_text(encoding="utf-8") for name in report.pages(kept)} == report.pages(kept)
        assert (docs / "benchmarks.svg").read_text(encoding="utf-8") == draw(kept["peers"])
