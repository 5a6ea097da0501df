"""Load requests: create, validate, approve or reject, and what of it is pure decision."""
