"""Build the toolchain from pinned Go modules into a cache outside of the checkout.

A *unit* is one Go module (in tools/, or engine/), or the Debian packages. The binaries of a unit are in an *entry* of
the cache. The name of the entry contains a hash of everything that the binaries depend on: the module's files without
its tests, the version of Go, and the flags. So a change of one module does not affect the entries of the others. An
entry is written to a temporary folder, which is then renamed. It contains a marker with the size and SHA-256 of each
binary, so that a damaged binary is detected and built again.

The *set* is a folder of links to all binaries; `.tools` in the checkout points to it.
"""
