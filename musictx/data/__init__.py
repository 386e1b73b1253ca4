"""Corpora -> stores -> batches."""
