"""One file per corpus: where it comes from, what its files are called, how it is split."""
