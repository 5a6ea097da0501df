"""Tests of the gate of the sync server.

The folder is a package, so that pytest ends its fixtures of the scope `package` when it leaves the folder.
"""
