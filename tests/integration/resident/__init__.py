"""Tests of the resident engine.

The folder is a package, so that pytest ends its fixtures of the scope `package` when it leaves the folder.
"""
