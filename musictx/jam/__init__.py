"""Plays with a person: hears a phrase, draws a reply, and plays it while it is drawn."""
