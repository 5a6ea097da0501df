"""The public API of groups and accounts: members, invites, and key rotation."""
