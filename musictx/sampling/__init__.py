"""Draws ids from a model, and makes music of them."""
