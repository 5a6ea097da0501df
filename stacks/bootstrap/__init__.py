"""The bootstrap program: one component resource for each phase (docs/model.md, section 8).

This module imports nothing: the process of the dynamic provider imports the package for `dynamic` alone, and Pulumi's
SDK for Kubernetes, which only `program` needs, takes longer to import than all of its own code.
"""
