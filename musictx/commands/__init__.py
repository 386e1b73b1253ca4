"""The `musictx` commands: settings in, a library's function, words out."""
