"""The Kubernetes Sentinel: applies desired stacks, watches live objects and repairs drift."""
