"""Build images of replicas and contracts: sources, contexts, archives, the Docker daemon."""
