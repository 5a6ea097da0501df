"""The reside command."""
