"""The embedded Kubernetes: real upstream binaries, started and stopped by us."""
