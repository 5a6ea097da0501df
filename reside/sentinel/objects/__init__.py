"""Pure functions over Kubernetes objects."""
