"""MAESTRO as a token store on its official split: python data_prep/maestro.py [path=ZIP-or-DIR]"""

from musictx.commands.prepare import command

if __name__ == "__main__":
    command("maestro")()
