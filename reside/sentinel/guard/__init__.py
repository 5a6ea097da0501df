"""Watch live objects and repair drift, with the Kubernetes API and the volume only."""
