"""The rules every Kubernetes object must obey."""
