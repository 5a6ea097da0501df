"""The Alpha replica: loads images, versions them, hands out permissions."""
