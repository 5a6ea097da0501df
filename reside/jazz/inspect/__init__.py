"""Looking at a value from outside: what it is, who may do what, and for each transaction why it counts or does not.

`python -m reside.jazz inspect URL ID` prints it. Whoever has no key for a value sees who wrote when, and whether it was
allowed: that needs no key. What reveals keys is never shown.
"""

from reside.jazz.inspect.inspection import inspect_value
from reside.jazz.inspect.rendering import render
from reside.jazz.inspect.report import OwnerReport, Report, TransactionReport

__all__ = ["OwnerReport", "Report", "TransactionReport", "inspect_value", "render"]
