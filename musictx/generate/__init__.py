"""Requests for music, and the sampling engine that answers them."""
