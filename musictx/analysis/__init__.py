"""Measures what a model learnt and what its music keeps, with intervals and a report."""
