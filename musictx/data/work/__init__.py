"""Getting through any pile of files: Dask spreads them, a reader process bears the risk, a journal remembers."""
