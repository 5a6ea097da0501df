"""What goes over the wire, to the byte: encodings, ciphers, headers and signed logs (jazz-protocol.md §§0-3)."""
