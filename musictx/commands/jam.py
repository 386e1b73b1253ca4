"""musictx jam: continue what you play, whenever you pause: live, through MIDI ports."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from omegaconf import MISSING

from musictx.commands import check_within
from musictx.config.command import Command
from musictx.errors import ConfigError, UserError, counted
from musictx.files import check_new, check_suffix, only_new
from musictx.generate.choose_bundle import name_bundle
from musictx.generate.open_player import check_device, open_playing
from musictx.generate.requests import MAX_SEED, Sampling
from musictx.jam.conversation import Conversation
from musictx.jam.keyboard import Keyboard
from musictx.jam.partner import Partner
from musictx.jam.players import FilePlayer, PortPlayer, open_port
from musictx.jam.recording import Playback, Recording
from musictx.jam.session import RealClock, Sender, VirtualClock, converse
from musictx.model.packaged import SEEDS, bundle_path, seed_path
from musictx.music.read import SUFFIXES
from musictx.setting import setting
from musictx.system import few_threads
from musictx.terminal import say
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.tokenizer import Event


@dataclass
class JamConfig:
    """musictx jam: continue what a person plays, whenever they pause."""

    bundle: str | None = setting(
        None,
        "piano, chorale, or a performance or chorale model that `musictx train` made; null: piano, unless the input is "
        "a file of four voices on a grid",
        path=True,
    )
    input: str = setting(
        MISSING,
        "the player: a MIDI port by its name or a part of it, or a MIDI file to play; elise, gymnopedie, chorale",
        path=True,
    )
    output: str = setting(
        MISSING, "where the replies sound: a MIDI port, or a MIDI file for the whole session", path=True
    )
    record: str | None = setting(
        None, "a MIDI file for the whole session, if the replies go to a port; null: none", path=True
    )
    virtual: bool = setting(False, "make ports of these names, so that other programs can connect to them")
    pause_s: float = setting(0.6, "a phrase ends after this long without a key down")
    reply_seconds: float | None = setting(8.0, "length of a reply; null: as long as the phrase")
    bpm: float | None = setting(None, "quarters a minute of a chorale model's grid; null: the file's, or 100")
    channel: int = setting(1, "MIDI channel of the replies, 1 to 16")
    random_seed: int = setting(0, "random seed")
    overwrite: bool = setting(False, "replace existing files")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting("auto", "float32, bfloat16 or int8; auto: int8 where it is faster")
    sampler: Sampling = field(default_factory=Sampling)
    rules: Rules = field(default_factory=lambda: Rules(max_silence_s=1.0, max_note_s=8.0))


WRITTEN = (".mid", ".midi")  # suffixes of a recorded session
QUARTER_S = 0.6  # if no tempo is given
SWITCH_S = 0.0005  # how soon Python switches to the sender's thread; its own 5 ms would be heard


def jam(config: JamConfig) -> None:
    if config.input in SEEDS or is_file(config.input):
        config = replace(config, input=str(seed_path(config.input)))
    check(config)
    device = check_device(config.device)
    files = [Path(name) for name in (config.output, config.record) if name is not None and is_file(name)]
    check_files(files, config)
    player = FilePlayer(Path(config.input)) if is_file(config.input) else None
    quarter_s = 60 / config.bpm if config.bpm is not None else player.quarter_s if player is not None else QUARTER_S
    choice = name_bundle(config.bundle, [Path(config.input)] if player is not None else [], played=True)
    if choice.remark:
        say(choice.remark)
    bundle = choice.bundle
    playing, tokenizer, header, remarks = open_playing(bundle_path(bundle), device=device, weights=config.weights)
    say(f"{bundle}: {header.origin}", *remarks)
    idiom = tokenizer.idiom(quarter_s)
    recording = Recording(quarter_s, config.channel - 1, player.project if player is not None else None)
    clock = RealClock() if is_real(config) else VirtualClock()
    with ExitStack() as stack:
        send = _open_output(config, stack)
        source = player if player is not None else PortPlayer(config.input, config.virtual, clock.now)
        stack.callback(source.close)
        stack.enter_context(_quick_threads())
        how = config.sampler.suited(header.sampling), config.rules, config.random_seed
        partner = Partner(playing, tokenizer, idiom, quarter_s, *how)

        def emit(event: Event) -> None:
            send(recording.sound(event))

        playback = Sender(emit, clock) if isinstance(clock, RealClock) else Playback(emit)
        keyboard = Keyboard(tokenizer.lo, tokenizer.hi, quarter_s)
        turns = config.pause_s, config.reply_seconds
        conversation = Conversation(keyboard, idiom, partner, playback, clock.now, *turns)
        say(f"listening to {config.input}: a pause of {config.pause_s:g} s is my turn; Ctrl-C ends", flush=True)
        try:
            converse(conversation, source, clock, recording.hear)
        except KeyboardInterrupt:
            say("stopped")
        finally:
            playback.close(clock.now())
            save(recording, files)  # first: whoever reads what is printed may have left
            summarise(playback, conversation, is_real(config))


def _open_output(config: JamConfig, stack: ExitStack) -> Callable[[Any], None]:
    """The output of messages: a port, which closes with the stack, or nothing."""
    if is_file(config.output):
        return lambda message: None
    port = stack.enter_context(closing(open_port("output", config.output, config.virtual)))
    return lambda message: port.send(message)


@contextmanager
def _quick_threads() -> Iterator[None]:
    """Runs the model on one thread, and lets the sender's thread interrupt it within `SWITCH_S`."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        with few_threads():
            yield
    finally:
        sys.setswitchinterval(before)


def is_file(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def is_real(config: JamConfig) -> bool:
    """Whether time passes as for a person; between two files the clock jumps."""
    return not (is_file(config.input) and is_file(config.output))


def check(config: JamConfig) -> None:
    """Raises ConfigError for settings that are impossible with any model."""
    spans = ("pause_s", 0.05, 60), ("reply_seconds", 0.1, 3600), ("bpm", 10, 1000)
    for name, *bounds in (*spans, ("channel", 1, 16), ("random_seed", 0, MAX_SEED)):
        check_within(config, name, *bounds)
    if not config.rules.masks:
        raise ConfigError("masks", got=False, why="only legal music is played live", hint="leave the masks on")
    config.rules.check_free("a reply")
    if config.virtual and not is_real(config):
        allowed = "a port's name as input= or output="
        raise ConfigError("virtual", got=True, why="there is no port to create", allowed=allowed)


def check_files(files: list[Path], config: JamConfig) -> None:
    """Raises UserError for files that cannot be written."""
    if is_file(config.output):
        check_suffix("output", config.output, WRITTEN)
    if config.record is not None:
        check_suffix("record", config.record, WRITTEN)
    if len({os.path.realpath(path) for path in (*map(str, files), config.input)}) <= len(files):
        raise UserError("a file has two uses", "give different files as input=, output= and record=")
    for path in files:
        is_record = config.record is not None and path == Path(config.record)
        check_new(config.overwrite, path, field="record" if is_record else "output")


def summarise(playback: Playback, conversation: Conversation, real: bool) -> None:
    """Prints counts and latencies of the session."""
    times_ms = [1000 * latency_s for latency_s in playback.latencies_s]
    if times_ms:
        interruptions = f", {conversation.interruptions} interrupted" if conversation.interruptions else ""
        figures = f"median {median(times_ms):.0f} ms, worst {max(times_ms):.0f} ms"
        say(f"replies: {len(times_ms)}{interruptions}; first note after the pause: {figures}")
    else:
        say("replies: none; no phrase ended with a pause")
    if times_ms and real:
        say(f"notes went out at most {1000 * playback.latest_s:.1f} ms after their time")
    if conversation.keyboard.outside:
        say(f"{conversation.keyboard.outside} notes were outside the model's range, so it did not hear them")


def save(recording: Recording, files: list[Path]) -> None:
    """Writes the session, unless nothing was played."""
    own, replies = recording.notes
    for path in files if own else []:
        recording.write(path)
        say(f"{path}: {recording.duration_s:.2f} s, {counted(own, 'note')} of the player, {replies} of the replies")
    if not own:
        say("nothing was played, nothing is recorded")


COMMAND = Command("jam", only_new(jam), JamConfig, {"sampler": "auto"}, main="input")
