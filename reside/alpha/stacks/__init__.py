"""Desired-state stacks: what each replica wants of Kubernetes, rendered from Alpha's data by pure functions."""
