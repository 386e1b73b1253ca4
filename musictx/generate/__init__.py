"""Opens a model, gives it a seed, a gap or a melody, and returns the music that it makes."""
