"""The Alpha replica: it loads images, versions them and hands out permissions."""
