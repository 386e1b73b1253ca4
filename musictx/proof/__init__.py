"""The checks that `musictx check` makes on a given device."""
