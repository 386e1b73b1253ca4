"""Measurements: speed and memory live here, never in a test."""
