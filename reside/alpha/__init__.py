"""The Alpha replica: it loads images, creates versions, and decides which permissions are expected."""
