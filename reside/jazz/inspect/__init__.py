"""Inspection of a value: its kind, its members' roles, and for each transaction whether it counts, or why not.

`python -m reside.jazz inspect URL ID` prints the result. An account without the key of a value sees authors, times and
whether each write was permitted, since these need no key. Content that reveals keys is never shown.
"""

from reside.jazz.inspect.inspection import inspect_value
from reside.jazz.inspect.rendering import render, render_json
from reside.jazz.inspect.report import OwnerReport, Report, TransactionReport

__all__ = ["OwnerReport", "Report", "TransactionReport", "inspect_value", "render", "render_json"]
