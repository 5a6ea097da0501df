"""Pulumi programs."""
