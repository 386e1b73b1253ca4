"""What a model is worth: likelihood, and the baselines beside it."""
