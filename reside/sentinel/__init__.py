"""The Kubernetes Sentinel: applies desired-state stacks and watches them."""
