"""musictx lesson: a concept of sequence models on hymns in a minute: a table, a picture, and the file to read."""

from dataclasses import dataclass
from pathlib import Path

from musictx.commands import print_table
from musictx.config.command import Command
from musictx.errors import ConfigError
from musictx.files import check_new, only_new
from musictx.lessons import lessons, run
from musictx.model.settings import one_of
from musictx.setting import setting
from musictx.terminal import say
from musictx.viz.figure import FORMATS, save_figure


@dataclass
class LessonConfig:
    """musictx lesson: run a lesson: a concept of sequence models, shown on hymns in a minute."""

    name: str | None = setting(None, "a lesson, say rnn; null: list them")
    out: str = setting("outputs/lessons", "a folder for the picture", folder=True)
    format: str = setting("png", "format of the picture: png, svg or pdf")
    overwrite: bool = setting(False, "replace an existing picture")


def lesson(config: LessonConfig) -> None:
    """Prints a lesson's table and writes its picture; without a name, lists all. Raises ConfigError."""
    if config.name is None:
        print_table(["lesson", "what it shows"], sorted(lessons().items()))
        say("musictx lesson NAME runs one; docs/lessons.md shows them all")
        return
    one_of("name", config.name, lessons())
    if f".{config.format}" not in FORMATS:
        raise ConfigError("format", got=config.format, allowed=f"one of {', '.join(f[1:] for f in FORMATS)}")
    picture = Path(config.out, f"{config.name}.{config.format}")
    check_new(config.overwrite, picture)
    say(f"{config.name}: {lessons()[config.name]} It takes up to a minute.", flush=True)
    finding = run(config.name)
    print_table(finding.headings, finding.rows, right=len(finding.headings) - 1)
    say(finding.words)
    save_figure(finding.figure, picture)
    package = Path(__file__).parents[1]
    own, *others = (str(package / each) for each in (f"lessons/{config.name}.py", *finding.read))
    say(f"{picture}: its picture", f"the lesson: {own}", *[f"in the toolkit: {', '.join(others)}"] * bool(others))


COMMAND = Command("lesson", only_new(lesson), LessonConfig, main="name")
