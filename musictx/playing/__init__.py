"""A model as a person plays it: opened, given a seed, a gap or a melody, and the music that comes back."""
