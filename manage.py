#!/usr/bin/env python
"""Django's command line for the site in ``project/``."""

import os
import sys
from pathlib import Path

from django.core.management import execute_from_command_line

from project.demo.joining import join

if __name__ == "__main__":
    if os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings") == "project.settings":
        folder = os.environ.get("DEMO_DIR", Path(__file__).resolve().parent / ".demo")
        join("".join(sys.argv[1:2]), Path(folder), os.environ)
    execute_from_command_line(sys.argv)
