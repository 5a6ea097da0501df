"""Image references, manifests and labels of an OCI registry."""
