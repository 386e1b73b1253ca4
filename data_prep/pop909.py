"""POP909 as a token store, split by song: python data_prep/pop909.py [path=ZIP-or-DIR]"""

from musictx.commands.prepare import command

if __name__ == "__main__":
    command("pop909")()
