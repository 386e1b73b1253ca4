"""One file per corpus: its origin, its files, its splits."""
