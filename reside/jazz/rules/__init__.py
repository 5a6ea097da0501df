"""Rules of validity: roles, transactions, read keys and deletions. They do not depend on logs or stores."""
