"""What counts: roles, verdicts on transactions, read keys and deletions; it knows neither logs nor stores."""
