"""Mechanisms that several packages share. The package imports no other package of ReSide."""
