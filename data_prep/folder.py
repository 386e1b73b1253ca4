"""A folder or zip of MIDI files as a token store: python data_prep/folder.py path=DIR-or-ZIP out=DIR"""

from musictx.commands.prepare import command

if __name__ == "__main__":
    command("folder")()
