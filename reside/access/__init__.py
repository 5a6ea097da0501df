"""Reach a cluster: target, kubeconfig, port-forward, waits."""
