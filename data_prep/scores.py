"""A folder or zip of scores as a token store: python data_prep/scores.py path=DIR-or-ZIP out=DIR"""

from musictx.commands.prepare import command

if __name__ == "__main__":
    command("scores")()
