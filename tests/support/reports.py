"""What a test reports besides whether it passes, such as how much it has tried; `-s` shows it."""

from __future__ import annotations

import sys


def report(text: str) -> None:
    """Print a text to the standard output of the test."""
    sys.stdout.write(f"\n{text}\n")
