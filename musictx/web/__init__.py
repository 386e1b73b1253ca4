"""The page in the browser: takes music, continues it, shows and plays it. Needs the optional extra `web`."""
