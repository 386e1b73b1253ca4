"""Models: tensors only, no music."""
