"""How a program reaches a cluster: target, kubeconfig, port-forward, waits."""
