"""The JSB chorales of the literature as a token store: python data_prep/jsb.py [path=Jsb16thSeparated.json]"""

from musictx.commands.prepare import command

if __name__ == "__main__":
    command("jsb")()
