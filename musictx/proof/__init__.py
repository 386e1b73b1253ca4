"""What `musictx check` proves on the device that it is given."""
