"""Reads any number of files: Dask spreads them, a reader process takes the crashes, a journal keeps finished work."""
