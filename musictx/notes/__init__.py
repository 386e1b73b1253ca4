"""What music is here: Score, MIDI in and out, sustain pedal, chorale grid. No tensors."""
