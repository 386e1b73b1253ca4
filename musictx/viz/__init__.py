"""Turns Scores into pictures, films and sound files."""
