"""Reads any number of files: threads share the work, reader processes take the crashes, a journal keeps it."""
