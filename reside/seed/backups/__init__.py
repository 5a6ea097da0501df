"""Back up a cluster to one encrypted file, and restore it from there into an empty namespace."""
