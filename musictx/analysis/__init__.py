"""Measures what a model knows and what its music keeps, with intervals and a report."""
