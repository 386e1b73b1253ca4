"""Figures of models and of their music, with intervals and a report."""
