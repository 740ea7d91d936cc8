"""
Try our package in hosts that we did not make: ``make foreign ARGS="wagtail --database sqlite"``.

For each host and database: install the host alone, then ours, see what should be seen, take ours out, and compare the schema.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.comparing.environments import Unavailable
from tests.foreign.bases import keep, restore
from tests.foreign.databases import VENDORS, database
from tests.foreign.environments import FOLDER, NotInstalled, build_wheel, environment_of, install

EXTRAS: Final = {"django": (), "ojs": ("cron",), "wagtail": ("api",), "pretix": ("api",)}
# Hosts that need a folder of others' files, which no package has: the variable that says where it is.
FOLDERS: Final = {"ojs": "OJS_CONFORMANCE"}


def main() -> int:
    """Try what the command line names; gives 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="make foreign", description=__doc__)
    parser.add_argument("hosts", nargs="*", choices=[*EXTRAS, []], help="Which hosts (default: all).")
    parser.add_argument("--database", choices=VENDORS, help="On one database alone (default: on both).")
    wanted = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # So that databases are dropped.
    failed = False
    with tempfile.TemporaryDirectory(prefix="timeline-foreign-") as folder:
        wheel = build_wheel(Path(folder))
        for host in wanted.hosts or EXTRAS:
            if (variable := FOLDERS.get(host)) and not os.environ.get(variable):
                print(f"{host}: left out, since {variable} names no folder.")
                failed |= host in wanted.hosts
                continue
            failed |= _fails(host, wheel, [wanted.database] if wanted.database else VENDORS)
    print("Something failed." if failed else "All of it holds.")
    return failed


def _fails(host: str, wheel: Path, vendors: list[str] | tuple[str, ...]) -> bool:
    began = time.monotonic()
    try:
        python, is_new = environment_of(host)
        came = install(host, python, wheel, *EXTRAS[host])
    except (NotInstalled, Unavailable) as error:
        print(f"{host}: {error}")
        return True
    print(
        f"{host}: environment {'made' if is_new else 'kept'} in {time.monotonic() - began:.0f} s; with ours came {came}"
    )
    failed = [vendor for vendor in vendors if _fails_on(vendor, host, python)]
    return bool(failed)


def _fails_on(vendor: str, host: str, python: Path) -> bool:
    began = time.monotonic()
    print(f"{host} on {vendor}", flush=True)
    with tempfile.TemporaryDirectory(prefix="timeline-foreign-") as folder, database(vendor, host, Path(folder)) as url:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "PYTHON"))},
            "PYTHONPATH": f"{FOLDER / 'shared'}:{FOLDER / host}",
            "DJANGO_SETTINGS_MODULE": "site_settings",
            "FOREIGN_DATABASE": url,
            "FOREIGN_FOLDER": folder,
        }
        first, *steps = (FOLDER / host / "steps.txt").read_text().splitlines()
        restored = restore(host, url)
        failed = [first] if _ends_badly(first, python, environment, cwd=folder) else []
        if not failed:
            if not restored:
                keep(host, url)
            failed = [step for step in steps if _ends_badly(step, python, environment, cwd=folder)]
    print(f"{host} on {vendor}: {'FAILED' if failed else 'well'}, {time.monotonic() - began:.0f} s", flush=True)
    return bool(failed)


def _ends_badly(step: str, python: Path, environment: dict[str, str], *, cwd: str) -> bool:
    """
    Run one line of ``steps.txt``, a module and its arguments.

    ``alone`` in front of it says that ours is not installed in the site, ``on sqlite`` that it is for that database only.
    """
    words = step.split()
    if words[0] == "on":
        if not environment["FOREIGN_DATABASE"].startswith(words[1]):
            return False
        words = words[2:]
    alone = words[0] == "alone"
    words = words[alone:]
    began = time.monotonic()
    variables = {**environment, "FOREIGN_ALONE": "1" if alone else ""}
    done = subprocess.run([str(python), "-m", *words], env=variables, cwd=cwd, check=False)
    if words[0] != "seeing" or done.returncode:  # It tells its own steps.
        how = f"FAILED with {done.returncode}" if done.returncode else "ok    "
        print(f"  {how}  {time.monotonic() - began:6.2f} s  {step}", flush=True)
    return bool(done.returncode)


if __name__ == "__main__":
    sys.exit(main())
