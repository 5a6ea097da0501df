# fmt: off
"""Written by `reside contract types`. Do not change it: write it again when the contract changes."""

from reside.replica.contract_types import ContractModel, Integer, Text, contract


class GreetBody(ContractModel):
    name: Text = "stranger"


class GreetReturns(ContractModel):
    message: Text
    version: Integer


CONTRACT = contract({
    "identity": "registry.reside.internal/reside/contracts/greeting.v1",
    "permissions": {"greet": {}},
    "methods": {"greet": {}},
})
