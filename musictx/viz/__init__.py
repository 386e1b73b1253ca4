"""Shows and plays Scores: pictures, films and sound files."""
