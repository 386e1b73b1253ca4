"""See it and hear it: Scores in, a picture or a sound file out."""
