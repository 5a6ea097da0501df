"""What counts: roles, verdicts on transactions, read keys, removals and deletions; pure but for what it remembers."""
