"""The contract `kubernetes-sentinel.v1`: its manifest, its data in Jazz, and who may declare what."""
