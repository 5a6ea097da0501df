"""Tests with real parts: a control plane, engines, registries.

The folder is a package, so that pytest ends its fixtures of the scope `package` when it leaves the folder.
"""
