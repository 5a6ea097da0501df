"""Distributed locks in etcd; nothing else is kept there."""
