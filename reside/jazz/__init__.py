"""A client for Jazz (CoJSON); knows nothing of ReSide."""
