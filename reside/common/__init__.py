"""Mechanisms that several packages share. It imports nothing of ReSide; each module can be used without the others."""
