"""Rules that every Kubernetes object must obey. The Sentinel applies them, and so does the pack in `policy/`."""
