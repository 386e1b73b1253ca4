"""musictx generate: continue a seed MIDI file, or fill a gap."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from musictx.analysis.repeats import Provenance
from musictx.commands import check_written, read_chords, write_beside
from musictx.commands.generate_settings import GenerateConfig, continue_request, fill_request
from musictx.config.command import Command
from musictx.config.fields import setting_keys
from musictx.data.store import Store
from musictx.errors import ConfigError, UserError, counted, with_keys
from musictx.files import only_new, stem_of
from musictx.generate.choose_bundle import check_licence, name_bundle
from musictx.generate.continuing import Beginning, continue_all, is_interrupted, read_beginning, refuse_part
from musictx.generate.filling import as_continue, check_fills, read_around
from musictx.generate.open_player import Playing, check_device, open_playing, own_settings
from musictx.generate.requests import NewMusic
from musictx.generate.result import Music
from musictx.generate.score_tasks import Task, check_files, check_seed, draw_tasks, task_of
from musictx.generate.seed_files import NEW, Targets, check_apart, find_seeds, find_sides, name_targets
from musictx.generate.seeds import read_each
from musictx.model.header import read_header
from musictx.model.packaged import bundle_path
from musictx.model.tensors import tensors_hash
from musictx.music.read import read_bytes, read_tracks
from musictx.system import few_threads
from musictx.terminal import say
from musictx.tokenizers.score import ScoreTokenizer
from musictx.viz.sound import MOST_S

if TYPE_CHECKING:
    from musictx.analysis.similarity import Neighbours


def generate(config: GenerateConfig) -> None:
    config.control = read_chords(config.control)
    if config.infill is not None or config.between is not None:
        fill_gap(config)
    elif config.seed_midi == "":
        why = "it is required and was not given, nor infill= or between="
        raise ConfigError("seed_midi", why=why, hint="see --help")
    else:
        continue_seeds(config)


def fill_gap(config: GenerateConfig) -> None:
    request = fill_request(config)
    device = check_device(config.device)
    sides = find_sides(config.infill, config.between)
    name = sides[0].with_name("-to-".join(map(stem_of, sides)) + ".mid")
    targets = targets_of(config, [name])
    _, errors = read_tracks_of(sides)
    check_all_read(errors, 1)
    opened = open_model(config, sides, device, request)
    player, tokenizer, header, _ = opened.playing
    if isinstance(tokenizer, ScoreTokenizer):
        check_files(config.pedal, config.between)
        say_settings(config, opened, has_seed=False)
        task = task_of(sides[0], tokenizer, request)
        draw(config, opened, {name: task}, partial(draw_tasks, [task], player, tokenizer, header.sampling), targets)
        return
    check_fills(opened.bundle, tokenizer)
    say_settings(config, opened, has_seed=False)
    around = read_around(sides, tokenizer, request)
    drawing = as_continue(around, request, player, header)
    compose = partial(continue_all, [around], player, tokenizer, drawing, own=header.sampling)
    draw(config, opened, {name: around}, compose, targets)


def continue_seeds(config: GenerateConfig) -> None:
    request = continue_request(config)
    if config.seed_midi is None:
        refuse_part(request)
    device = check_device(config.device)
    sources = find_seeds(config.seed_midi)
    check_apart(config.seed_midi, sources, Path(config.out))
    targets = targets_of(config, sources)
    if config.seed_midi is None:
        files, errors = list[Path](), list[UserError]()
    else:
        files, errors = read_tracks_of(sources)
        if not files:
            check_all_read(errors, len(sources))
    opened = open_model(config, files, device, request)
    player, tokenizer, header, _ = opened.playing
    beginnings: Mapping[Path, Beginning | Task]
    compose: Callable[[], Sequence[Sequence[Music]]]
    if isinstance(tokenizer, ScoreTokenizer):
        check_files(config.pedal)
        check_seed(config.seed_midi)
        say_settings(config, opened, has_seed=True)
        tasks, more_errors = read_each(files, partial(task_of, tokenizer=tokenizer, request=request))
        beginnings, compose = tasks, partial(draw_tasks, [*tasks.values()], player, tokenizer, header.sampling)
    else:
        say_settings(config, opened, has_seed=bool(files))
        primers, more_errors = read_each(files, partial(read_beginning, tokenizer=tokenizer, request=request))
        beginnings = primers = primers if files else {sources[0]: Beginning(NEW.stem)}
        compose = partial(continue_all, [*primers.values()], player, tokenizer, request, own=header.sampling)
    errors += more_errors
    if not beginnings:
        check_all_read(errors, len(sources))
    draw(config, opened, beginnings, compose, targets)
    check_all_read(errors, len(sources))


def targets_of(config: GenerateConfig, names: list[Path]) -> dict[Path, Targets]:
    """The files of each name. Raises ConfigError for more sound than a file holds, UserError for files that exist."""
    if config.wav and (config.length_seconds or 0) > MOST_S:
        raise ConfigError("length_seconds", got=config.length_seconds, why="wav=true", allowed=f"at most {MOST_S:g}")
    extras = {"wav": config.wav, "png": config.png, "musicxml": config.musicxml, "overwrite": config.overwrite}
    return dict(zip(names, name_targets(names, Path(config.out), config.variations, **extras), strict=True))


def read_tracks_of(files: list[Path]) -> tuple[list[Path], list[UserError]]:
    """The files that can be read, and the errors of the others, before the model loads."""
    readable, errors = read_each(files, lambda file: read_tracks(read_bytes(file), file))
    return [*readable], errors


class OpenModel(NamedTuple):
    """A model with its name, and the stores in which copies are looked for."""

    bundle: str
    playing: Playing
    origins: "list[Provenance | Neighbours]"


def open_model(config: GenerateConfig, files: list[Path], device: str, request: NewMusic) -> OpenModel:
    """Opens and prints the model that plays."""
    origins: list[Provenance | Neighbours] = []
    if config.known_store is not None:
        origins.append(Provenance(Store(config.known_store)))
    choice = name_bundle(
        config.bundle,
        files,
        config.drums,
        request=request,
        pedal=config.pedal,
        between=config.between,
        licence=config.licence,
    )
    check_licence(config.licence, choice.bundle, read_header(bundle_path(choice.bundle)))
    if choice.remark:
        say(with_keys(choice.remark, setting_keys("generate")))
    playing = open_playing(
        bundle_path(choice.bundle),
        device=device,
        weights=config.weights,
        graph=config.graph,
        attention=config.attention.impl,
    )
    say(f"{choice.bundle}: {playing.header.origin}")
    if config.known_store is not None:
        origins += neighbours(config.known_store, choice.bundle, device)
    return OpenModel(choice.bundle, playing, origins)


def say_settings(config: GenerateConfig, opened: OpenModel, has_seed: bool) -> None:
    """Prints how the model plays; without a seed it has no seed guidance."""
    say(*opened.playing.remarks)
    own = opened.playing.header.sampling if has_seed else opened.playing.header.sampling | {"seed_guidance": None}
    if settings := own_settings(config.sampler, own):
        say(settings)
    if not opened.playing.tokenizer.ruled and config.rules.masks:
        say(f"{opened.playing.tokenizer.name}: any token is legal at any time, so nothing is masked")


def draw(
    config: GenerateConfig,
    opened: OpenModel,
    beginnings: Mapping[Path, Beginning | Task],
    compose: Callable[[], Sequence[Sequence[Music]]],
    targets: dict[Path, Targets],
) -> None:
    """Writes and prints the new music of each beginning. Raises KeyboardInterrupt where a person stopped it."""
    errors = list[UserError]()
    for beginning in beginnings.values():
        say(*(with_keys(each, setting_keys("generate")) for each in beginning.remarks))
    with few_threads(min(config.rows_at_once, config.variations * len(beginnings))):
        music = compose()
    for (source, beginning), pieces in zip(beginnings.items(), music, strict=True):
        say(*dict.fromkeys(each for piece in pieces for each in piece.remarks if each not in beginning.remarks))
        errors += write(source, targets[source], pieces, opened.origins, config.alone, config.pedal)
    if is_interrupted(music, config.variations):
        say(*(f"not written: {error}" for error in errors))
        say("interrupted: what existed by then is written, the rest is missing")
        raise KeyboardInterrupt
    for piece in {piece.stopped: piece for pieces in music for piece in pieces if piece.stopped}.values():
        end = "the gap was full" if piece.is_new is not None else "the asked length"
        say(f"stopped before {end}: {piece.stopped}")
    check_written(errors)


def check_all_read(errors: list[UserError], of: int) -> None:
    """Raises UserError for the errors of some of so many files."""
    if errors and of == 1:
        raise errors[0]
    if errors:
        keys = setting_keys("generate")
        lines = "; ".join(error.line(keys) for error in errors)
        raise UserError(f"{len(errors)} of {of} seeds left out: {lines}")


def neighbours(known_store: str, bundle: str, device: str) -> "list[Neighbours]":
    """The passages of `known_store` by `musictx similar` with this model; prints the command where there are none."""
    from musictx.analysis.embedding import Embedder  # PyTorch hears, where a store is given
    from musictx.analysis.similarity import Neighbours
    from musictx.generate.open_bundle import open_bundle

    model, tokenizer, _ = open_bundle(bundle_path(bundle), device)
    try:
        ear = Embedder(model, tokenizer)
    except ConfigError:  # it has no layer to hear with
        return []
    passages = Neighbours(Store(known_store), ear, tensors_hash(bundle_path(bundle)))
    if passages.index is None:
        words = f"musictx similar … {quote(f'store={known_store}')} {quote(f'bundle={bundle}')}"
        say(f"known_store= can also name the nearest passages: run `{words}` once")
    return [passages]


def write(
    source: Path,
    files: Targets,
    pieces: Sequence[Music],
    origins: "list[Provenance | Neighbours]",
    alone: bool = False,
    pedal: bool = False,
) -> list[UserError]:
    """Writes a seed's continuations, or the fills of a gap, and prints a line of facts for each; the reasons of scores
    that cannot be written."""
    if pieces and pieces[0].unheard:
        say(f"{source}: longer than the model looks back; it does not hear the oldest {pieces[0].unheard} tokens")
    for path, music in zip(files.midi, pieces, strict=False):
        origin = "; ".join(text for each in origins if (text := each.text(music.new_notes)))
        lacks = music.write(path, origin, alone=alone, pedal=pedal)
        begins_s = music.new_from_s if alone or music.place is None else music.new_from_s + music.place.later_s
        new = f"{len(music.new_notes)} of them new; new music from {begins_s:.2f} s on"
        if music.is_new is not None:
            new = f"{music.is_new.sum()} of them new, from {music.new_from_s:.2f} to {music.new_to_s:.2f} s"
        became = f" ({music.became})" if music.became else ""
        twins = (twin for twin, other in zip(files.midi, pieces, strict=False) if other.new_notes == music.new_notes)
        if len(music.new_notes) and (twin := next(twins)) != path:
            became += f", the same as in {twin.name}"
        whole = read_tracks(path.read_bytes(), path).merge(drums=True)  # with the parts that the model does not hear
        say(f"{path}: {counted(len(whole), 'note')}, {new}{became}")
        say(*(f"{path}: {remark}" for remark in (lacks, music.beat, origin) if remark))
    renamed = [replace(m, name=path.stem) for path, m in zip(files.midi, pieces, strict=False)]
    title = "the seed and its continuations" if pieces and pieces[0].is_new is None else "what is kept and what is new"
    return write_beside(renamed, files, f"{title}, as piano rolls")


COMMAND = Command(
    "generate", only_new(generate), GenerateConfig, {"sampler": "auto", "attention": "auto"}, main="seed_midi"
)
