"""Permissions of accounts: what is due, the sync of control blocks, grants by people, requests of replicas."""
