"""Rendering of desired stacks: pure functions from Alpha's data to the Kubernetes objects of a replica."""
