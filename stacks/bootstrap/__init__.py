"""The bootstrap program: one component resource for each phase (docs/model.md, section 8)."""

from stacks.bootstrap.accounts import Accounts
from stacks.bootstrap.cluster import Cluster
from stacks.bootstrap.handover import Handover
from stacks.bootstrap.launch import Launch
from stacks.bootstrap.load import Load
from stacks.bootstrap.storage import Storage

__all__ = ["Accounts", "Cluster", "Handover", "Launch", "Load", "Storage"]
