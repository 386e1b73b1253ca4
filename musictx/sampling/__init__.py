"""Ids out of a model, and music out of ids."""
