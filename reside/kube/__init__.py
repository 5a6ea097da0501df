"""kubeconfig and port-forward by kubectl; no knowledge of ReSide."""
