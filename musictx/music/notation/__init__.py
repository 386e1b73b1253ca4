"""Scores of notation programs: what they are, reading, writing."""
