"""Playing with a person: a phrase is heard, a reply is drawn and sounds while it is drawn."""
