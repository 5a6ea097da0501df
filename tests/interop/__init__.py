"""Tests with the official Jazz packages.

The folder is a package, so that pytest ends its fixtures of the scope `package` when it leaves the folder.
"""
