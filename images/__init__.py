"""Container images of ReSide and how they are built: one folder an image, `build.py` for all of them.

Not part of the wheel: images are built out of a checkout.
"""
