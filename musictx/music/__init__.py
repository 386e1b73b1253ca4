"""What music is: notes, files, grids."""
