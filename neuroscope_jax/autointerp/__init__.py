"""Labels from Claude: evidence of a feature → prompt → answer → label, and how well the label foretells the feature."""
