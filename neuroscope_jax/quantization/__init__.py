"""What weights of fewer bits are called, and what they do to the features that are read."""
