"""Builds the toolchain out of pinned Go modules into a cache outside the checkout.

One *unit* is one Go module (of tools/, or engine/), or the Debian packages. A unit's binaries lie in an *entry* of the
cache, whose name holds a hash of all that decides them: the module's files without its tests, Go's version, the flags.
So a change of one module leaves the entries of the others as they are. An entry is written beside its place and
renamed, with a marker that holds each binary's size and SHA-256, so that a broken one is found and built anew. The
*set* is a folder of links to all binaries, to which `.tools` in the checkout points.
"""
