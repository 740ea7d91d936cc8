"""The built wheel, and what README says of adding it to a project on SQLite."""

from __future__ import annotations

import zipfile

from tests.new_project import ROOT, SIGN_UP


class TestWheel:
    def test_holds_the_package_alone_with_all_it_needs(self, wheel):
        names = zipfile.ZipFile(wheel).namelist()

        tops = {name.split("/")[0] for name in names}
        assert {top for top in tops if not top.endswith(".dist-info")} == {"timeline"}
        assert "timeline/py.typed" in names
        assert "timeline/migrations/0001_initial.py" in names
        sources = {f"timeline/sql/{file.name}" for file in (ROOT / "timeline" / "sql").glob("*.sql")}
        assert sources <= set(names)
        for folder in ("templates", "static", "locale"):
            files = [file for file in (ROOT / "timeline" / folder).rglob("*") if file.is_file()]
            assert {str(file.relative_to(ROOT)) for file in files} <= set(names)
            assert files


class TestAddItToYourProject:
    def test_lets_a_timeline_run(self, new_project, tmp_path):
        new_project.manage("makemigrations", "accounts")
        new_project.manage("migrate")
        assert "no issues" in new_project.manage("check", "--database", "default")
        where = new_project.manage("shell", "--verbosity", "0", "-c", "import timeline; print(timeline.__file__)")
        assert where.startswith(str(tmp_path / "installed"))

        key = new_project.manage("shell", "--verbosity", "0", "-c", SIGN_UP).strip()
        new_project.start("manage", "timeline_worker")
        completed = new_project.wait_until_completed(key, "trial.remind", "trial.expire")

        assert completed == ["trial.remind", "trial.expire"]
        assert new_project.stop() == [0]
        assert "trial.check_script_usage" in new_project.manage("timeline_explain", "accounts.user", key)
