"""What the Sentinel does while it holds the lease: apply, preview, prune, report."""
