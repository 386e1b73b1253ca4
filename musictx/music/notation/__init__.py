"""Scores of notation programs: their parts and bars, reading, writing."""
