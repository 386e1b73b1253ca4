"""The Bach chorales that music21 ships, as a token store: python data_prep/chorales.py out=DIR"""

from musictx.commands.prepare import command

if __name__ == "__main__":
    command("chorales")()
