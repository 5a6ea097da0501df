"""The user manager: users by name, sets of permissions, and who has what. Its code is in the package `reside.users`."""

from pathlib import Path

from reside.replica import load_contract
from reside.users.app import declare

user_manager = declare(load_contract(Path(__file__).parent / "user-manager.v1" / "contract.yaml"))


if __name__ == "__main__":
    user_manager.launch()
