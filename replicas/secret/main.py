"""The replica *secret*: named values that accounts read and set by permission. Its code is in `reside.secrets`."""

from pathlib import Path

from reside.replica import load_contract
from reside.secrets.app import declare

secret = declare(load_contract(Path(__file__).parent / "secret.v1" / "contract.yaml"))


if __name__ == "__main__":
    secret.launch()
