"""ReSide runs small autonomous services, replicas, on Kubernetes."""
