"""musictx accompany: write the voices around those that a file has, or the hands that it lacks; what is there stays."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from omegaconf import MISSING

from musictx.commands import check_written, read_chords, write_beside
from musictx.config.command import Command
from musictx.config.fields import setting_keys
from musictx.config.train import AttentionConfig
from musictx.errors import counted, with_keys
from musictx.files import only_new
from musictx.generate.accompanying import Accompanied, accompany_melody, check_request
from musictx.generate.choose_bundle import name_accompanist
from musictx.generate.control import Control
from musictx.generate.melodies import read_melody
from musictx.generate.open_player import check_device, open_accompanying, open_playing, own_settings
from musictx.generate.requests import HUMANIZE, Accompany, Request, Sampling
from musictx.generate.score_music import ScoreMusic
from musictx.generate.score_tasks import check_files, task_of
from musictx.generate.seed_files import Targets, name_targets
from musictx.model.header import read_header
from musictx.model.packaged import bundle_path, seed_path
from musictx.setting import setting
from musictx.system import few_threads
from musictx.terminal import say
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.score import ScoreTokenizer


@dataclass
class AccompanyConfig:
    """musictx accompany: write the other voices of a choir, or the hands of a piano, and leave the melody unchanged."""

    bundle: str | None = setting(
        None,
        "harmoniser, score, a file that `musictx train` made with objective=voices or of scores, or a run's folder; "
        "null: score for a tune or one hand on a grid, else harmoniser; a score with both hands needs part=",
        path=True,
    )
    melody: str = setting(
        MISSING,
        "a MIDI file, or elise, gymnopedie or chorale; of several parts the highest is the melody, of chords their top",
        path=True,
    )
    out: str = setting(
        "outputs/accompaniments",
        "a folder for the melody with its voices, or the name of a file: .mid, .musicxml, .mxl, .wav or .png",
        path=True,
    )
    part: str | None = setting(
        None, "the name or number of the part that is the melody, as inspect names it; null: the highest"
    )
    voices: str = setting(Accompany.voices, "the voices that the file has: S, A, T, B, or several, as in SB")
    rewrite: str | None = setting(None, "write these voices of a file with all four again, as in A; null: none")
    from_bar: int | None = setting(None, "rewrite: the first bar, counted from 1; null: all bars")
    to_bar: int | None = setting(None, "rewrite: the last bar")
    transpose: int | str = setting(
        Accompany.transpose,
        "models of chorales: the model hears the melody so many semitones higher, and the output is moved back; auto: "
        "where voices sing it",
    )
    variations: int = setting(Accompany.variations, "accompaniments of the melody")
    rows_at_once: int = setting(Accompany.rows_at_once, "rows drawn together")
    random_seed: int = setting(Accompany.random_seed, "random seed: the same one gives the same music")
    alone: bool = setting(False, "write the music alone, at one tempo; false: the voices into the melody's own file")
    pedal: bool = setting(False, "write long new notes as keys and sustain pedal")
    humanize: bool = setting(Request.humanize, HUMANIZE)
    wav: bool = setting(False, "also write the sound of each accompaniment")
    musicxml: bool = setting(False, "also write the score of each, for a notation program")
    png: bool = setting(False, "also write a picture of melody and voices")
    overwrite: bool = setting(False, "replace existing files")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting(
        "auto", "float32, bfloat16 or int8; int8 is fastest for one row on a CPU; auto: int8 where it is faster"
    )
    sampler: Sampling = field(default_factory=lambda: Accompany().sampling)
    rules: Rules = field(default_factory=Rules)
    control: Control = field(default_factory=Control)
    attention: AttentionConfig = field(default_factory=AttentionConfig)


def accompany(config: AccompanyConfig) -> None:
    check_device(config.device)
    config.control = read_chords(config.control)
    request = Accompany(
        config.sampler,
        rules=config.rules,
        control=config.control,
        random_seed=config.random_seed,
        variations=config.variations,
        rows_at_once=config.rows_at_once,
        humanize=config.humanize,
        only=config.part,
        voices=config.voices,
        rewrite=config.rewrite,
        from_bar=config.from_bar,
        to_bar=config.to_bar,
        transpose=config.transpose,
    )
    source = seed_path(config.melody)
    extras = {"wav": config.wav, "png": config.png, "musicxml": config.musicxml, "overwrite": config.overwrite}
    (targets,) = name_targets([source], Path(config.out), config.variations, **extras)
    choice = name_accompanist(config.bundle, source, request, config.pedal)
    if choice.remark:
        say(with_keys(choice.remark, setting_keys("accompany")))
    header = read_header(bundle_path(choice.bundle))
    say(f"{choice.bundle}: {header.origin}")
    draw = beside_score if header.tokenizer == ScoreTokenizer.name else around_melody
    pieces = draw(config, choice.bundle, request, source)
    write(pieces, targets, config.alone, config.pedal)


def around_melody(config: AccompanyConfig, bundle: str, request: Accompany, source: Path) -> list[Accompanied]:
    """The voices around a melody."""
    options = {"device": config.device, "weights": config.weights, "attention": config.attention.impl}
    player, tokenizer, header, remarks = open_accompanying(bundle_path(bundle), bundle, **options)
    request = check_request(request, tokenizer, header, bundle)
    melody = read_melody(source, request, tokenizer)  # before anything is written
    say(*melody.remarks)
    if own := own_settings(config.sampler, header.sampling):
        say(own)
    say(*remarks)
    with few_threads(min(config.rows_at_once, config.variations)):
        return accompany_melody(melody, player, tokenizer, request)


def beside_score(config: AccompanyConfig, bundle: str, request: Accompany, source: Path) -> list[ScoreMusic]:
    """The hands that a score lacks."""
    check_files(config.pedal)
    path, attention = bundle_path(bundle), config.attention.impl
    player, tokenizer, header, remarks = open_playing(
        path, device=config.device, weights=config.weights, attention=attention
    )
    assert isinstance(tokenizer, ScoreTokenizer)
    task = task_of(source, tokenizer, request)
    say(*(with_keys(each, setting_keys("accompany")) for each in task.remarks))
    if own := own_settings(config.sampler, header.sampling | {"seed_guidance": None}):
        say(own)
    say(*remarks)
    with few_threads(min(config.rows_at_once, config.variations)):
        return task.draw(player, tokenizer, own=header.sampling)


def write(pieces: Sequence[Accompanied | ScoreMusic], files: Targets, alone: bool, pedal: bool) -> None:
    for path, music in zip(files.midi, pieces, strict=True):
        lacks = music.write(path, alone=alone, pedal=pedal)
        is_melody = isinstance(music, Accompanied) and not music.rewrite and len(music.melody_voices) == 1
        given = ("note of the melody", "notes of the melody") if is_melody else ("given note",)
        notes = f"{counted(len(music.given_notes), *given)}, unchanged, {counted(len(music.new_notes), 'new one')}"
        became = f" ({music.became})" if music.became else ""
        stopped = f"; stopped before the end: {music.stopped}" if music.stopped else ""
        say(f"{path}: {notes}{became}, {-music.mean_log_p:.3f} nats a token{stopped}")
        say(*[f"{path}: {lacks}"] * bool(lacks))
    check_written(write_beside(pieces, files, "the melody and its voices as piano rolls"))


COMMAND = Command(
    "accompany", only_new(accompany), AccompanyConfig, {"sampler": "auto", "attention": "auto"}, main="melody"
)
