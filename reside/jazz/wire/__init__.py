"""The wire format: encodings, ciphers, headers and signed logs (docs/jazz-protocol.md, sections 0 to 3)."""
