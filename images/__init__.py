"""ReSide's container images and the program that builds them. Each image has a folder; `build.py` builds them all.

The wheel does not contain this package, because images are built from a checkout.
"""
