"""The values that a group owns: their public classes, and how valid transactions become their content."""
