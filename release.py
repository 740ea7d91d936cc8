"""
Make the files of a release: ``make release``.

What is committed is built in an empty folder: an sdist, and the wheel out of that sdist. Both are checked. README and the page
about Celery are followed with the wheel, in environments made only of what they say: a task runs by the embedded worker on
SQLite, and by Celery on PostgreSQL over Redis. Then the files are put into ``dist``. Nothing is uploaded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
TWINE = "twine>=6.1,<8"
# Where the pages are followed, by the database that the tests run on.
FOLLOWED = {"sqlite": "tests/test_installed.py", "postgresql": "tests/postgresql/test_installed_with_celery.py"}

PRINTED: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}


def run(*command: str | Path, **variables: str) -> str:
    """Run a command in the checkout; gives what it printed, and ends this process where it fails."""
    environment = {**os.environ, **variables}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, **PRINTED)
    if done.returncode:
        sys.exit(f"{done.stdout}\nNo release: {' '.join(map(str, command))} failed.")
    printed: str = done.stdout.strip()
    return printed


def say(text: str) -> None:
    """Say what was done."""
    print(text, flush=True)


def export(folder: Path) -> Path:
    """Write what is committed into a folder."""
    if changed := run("git", "status", "--porcelain"):
        sys.exit(f"No release: commit or remove first what is not committed.\n{changed}")
    archive, source = folder / "source.tar", folder / "source"
    run("git", "archive", "--output", archive, "HEAD")
    shutil.unpack_archive(archive, source, filter="data")
    say(f"Took what is committed: {run('git', 'log', '-1', '--format=%h %s')}")
    return source


def build(source: Path, folder: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel out of it; a wheel straight from the source has to be the same."""
    run(sys.executable, "-m", "build", "--outdir", folder, source)
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder / "direct", source)
    [sdist], [wheel], [direct] = folder.glob("*.tar.gz"), folder.glob("*.whl"), (folder / "direct").glob("*.whl")
    if files_of(wheel) != files_of(direct):
        sys.exit("No release: the wheel out of the sdist is not the wheel out of the source.")
    say(f"Built {sdist.name}, and out of it {wheel.name} with {len(files_of(wheel))} files.")
    return sdist, wheel


def files_of(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel, each with what is in it."""
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def check(folder: Path, *files: Path) -> None:
    """Let twine check them, from an environment of its own."""
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "venv", folder)
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", TWINE)
    run(python, "-m", "twine", "check", "--strict", *files)
    say("twine has nothing to say against them.")


def follow(wheel: Path) -> None:
    """Follow README with the wheel, on both databases. A test that is skipped, where no Redis answers, is no proof."""
    for database, test in FOLLOWED.items():
        said = run(sys.executable, "-m", "pytest", "-q", test, TEST_DB=database, TIMELINE_WHEEL=str(wheel))
        if " passed" not in said or " skipped" in said:
            sys.exit(f"{said}\nNo release: README was not followed on {database}.")
        say(f"Followed README with the wheel on {database}: {said.splitlines()[-1]}.")


def main() -> None:
    """Make the files."""
    with tempfile.TemporaryDirectory(prefix="timeline-release-") as name:
        folder = Path(name)
        sdist, wheel = build(export(folder), folder / "built")
        check(folder / "twine", sdist, wheel)
        follow(wheel)
        shutil.rmtree(ROOT / "dist", ignore_errors=True)
        (ROOT / "dist").mkdir()
        for file in (sdist, wheel):
            say(f"Left {Path(shutil.copy(file, ROOT / 'dist')).relative_to(ROOT)}")


if __name__ == "__main__":
    main()
