"""The work of the leading Sentinel: apply, preview, prune, report."""
