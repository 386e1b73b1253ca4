"""Music itself: notes, MIDI files and grids."""
