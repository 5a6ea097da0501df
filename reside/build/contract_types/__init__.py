"""Types of a contract in TypeScript and Python, from the JSON Schemas of its methods and permissions.

A contract's image may come from anybody. So what it contains is read into types of our own (`kinds`), and whatever is
not understood exactly is refused with its place (`schemas`). The writers (`typescript`, `python`) make identifiers of
their own (`naming`), and everything else from the contract is an escaped literal or a filtered comment. A library that
converts schemas would cover more keywords, but each language another part, and with its own way to quote.
"""

from reside.build.contract_types.contract import write_types

__all__ = ["write_types"]
