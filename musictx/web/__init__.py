"""The page in the browser: music in, continued, seen and heard. Needs the optional extra `web`."""
