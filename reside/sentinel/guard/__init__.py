"""Watch live objects and repair drift; needs the Kubernetes API and the volume only."""
