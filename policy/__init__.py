"""The policy: rules that every Kubernetes object must obey."""
