"""`musictx.load`: a model that continues, fills or accompanies music in Python."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from musictx.errors import BundleError, ConfigError
from musictx.generate.accompanying import Accompanied, accompany_melody, check_request
from musictx.generate.continuing import Beginning, begin_with, continue_all, is_interrupted, read_beginning, refuse_part
from musictx.generate.control import Control
from musictx.generate.filling import as_continue, check_fills, gap_in_piece, read_around
from musictx.generate.melodies import read_melody, take_melody
from musictx.generate.open_player import check_device, check_task, on_onnx, open_accompanying, open_playing
from musictx.generate.primer import Part
from musictx.generate.requests import Accompany, Continue, Fill, Length, Request, Sampling
from musictx.generate.result import Music
from musictx.generate.score_music import ScoreMusic
from musictx.generate.score_tasks import check_files, draw_tasks, task_of
from musictx.generate.seeds import Seed, find_seeds
from musictx.model.header import BundleHeader, read_header
from musictx.model.onnx.player import OnnxSourcePlayer
from musictx.model.onnx.settings import SOURCE_KIND, can_play_source
from musictx.model.packaged import bundle_path, seed_path
from musictx.model.settings import AUTO
from musictx.model.steps import Player, SourcePlayer
from musictx.music.score import Meter, Score
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.score import ScoreTokenizer

if TYPE_CHECKING:
    from musictx.model.protocol import LanguageModel


def load(
    bundle: str | Path, *, device: str = "cpu", weights: str = AUTO, graph: bool = False, attention: str = AUTO
) -> "Model":
    """Opens a model to continue, fill or accompany music.

    `bundle` is "piano", "chorale" or "harmoniser", a file that `musictx train` made, or the folder of a run. `weights`
    are "float32", "bfloat16", "int8", or "auto": int8 where it is faster. `graph` takes steps of one shape in a CUDA
    graph. `attention` is a kernel, as in `musictx train attention.impl=`.

    Raises:
        BundleError: for a file that is missing, damaged or no bundle.
        ConfigError: for a setting that does not exist, or that this machine cannot meet.
    """
    path, device = bundle_path(str(bundle)), check_device(device)
    header = read_header(path)
    if on_onnx(header, device, weights, graph, attention):
        player, tokenizer, header, _ = open_playing(path, weights=weights)
        return Model(player, tokenizer, header)
    if on_onnx(header, device, weights, graph, attention, can_play_source):
        source_player, tokenizer, header, _ = open_accompanying(path, bundle, weights=weights)
        return Model(source_player, tokenizer, header)
    from musictx.generate.open_bundle import fast_model, open_bundle  # PyTorch

    opened = open_bundle(path, device, attention, continues=False)
    return Model(fast_model(opened.model, weights, graph, device), opened.tokenizer, opened.header, device)


class Model:
    """A model with its tokenizer. `header` names its corpus and licence."""

    def __init__(
        self,
        model: Union["LanguageModel", Player, SourcePlayer],
        tokenizer: Tokenizer,
        header: BundleHeader | None = None,
        device: str = "cpu",
    ) -> None:
        self.model, self.tokenizer, self.header, self.device = model, tokenizer, header, device

    @property
    def player(self) -> Player:
        model: Any = self.model
        if isinstance(model, Player):
            return model
        from musictx.model.torch_steps import TorchPlayer

        return TorchPlayer(model, self.device)

    @property
    def _source_player(self) -> SourcePlayer:
        model: Any = self.model
        if isinstance(model, OnnxSourcePlayer):
            return model
        from musictx.model.torch_steps import TorchSourcePlayer

        return TorchSourcePlayer(model, self.device)

    @property
    def origin(self) -> str:
        """The corpus and the licence of the weights."""
        return self.header.origin if self.header is not None else "unknown"

    def continue_midi(
        self,
        seed: str | Path | Score | None,
        /,
        *,
        seconds: float | None = None,
        bars: float | None = None,
        tokens: int | None = None,
        from_s: float | None = None,
        seed_seconds: float | None = None,
        seed_bars: int | None = None,
        seed_from: str = Part.side,
        start: str = Part.start,
        include_seed: bool = Continue.include_seed,
        variations: int = Continue.variations,
        random_seed: int = Continue.random_seed,
        temperature: float = Sampling.temperature,
        top_k: int | None = None,
        top_p: float | str | None = AUTO,
        min_p: float | None = None,
        guard: bool = Sampling.guard,
        seed_guidance: float | str | None = AUTO,
        rules: Rules | None = None,
        control: Control | None = None,
        part: str | None = None,
        drums: bool = Continue.drums,
        window: int | None = None,
        rows_at_once: int = Continue.rows_at_once,
        humanize: bool = Request.humanize,
    ) -> list[Music]:
        """Continues a MIDI file, every one in a folder or pattern, a score, or nothing (None).

        `seed` may be "elise", "gymnopedie" or "chorale" too. A score has four beats a bar. Give at most one of
        `seconds`, `bars` and `tokens`; none means 20 seconds. `musictx generate --help` explains the other arguments.

        Units:
            `seconds`, `from_s` and `seed_seconds` in seconds, `bars` and `seed_bars` in bars of the seed.

        Raises:
            UserError: as the command does, in one line.
            KeyboardInterrupt: on Ctrl-C.
        """
        request = Continue(
            Sampling(temperature, top_k, top_p, min_p, guard, seed_guidance),
            Length(seconds, bars, tokens),
            rules=rules or Rules(),
            control=(control or Control()).read(),
            random_seed=random_seed,
            variations=variations,
            rows_at_once=rows_at_once,
            humanize=humanize,
            window=window,
            drums=drums,
            only=part,
            part=Part(seed_seconds, seed_bars, seed_from, from_s, start),
            include_seed=include_seed,
        )
        if isinstance(self.model, Player):
            check_task(self.header, "this model")
        elif isinstance(self.model, OnnxSourcePlayer):
            what = f"this model: {SOURCE_KIND} models take source and ids, and cannot continue music"
            raise BundleError(what, "give another")
        else:
            from musictx.generate.open_bundle import check_continues

            check_continues(self.model, self.header, "this model")
        if isinstance(self.tokenizer, ScoreTokenizer):
            return [*self._draw_scores("seed_midi", seed, request)]
        if seed is None:
            refuse_part(request)
            beginnings = [Beginning("new")]
        elif isinstance(seed, Score):
            beginnings = [begin_with(seed, self.tokenizer, request)]
        elif isinstance(seed, str | Path):
            beginnings = [read_beginning(file, self.tokenizer, request) for file in find_seeds(str(seed))]
        else:
            raise ConfigError("seed_midi", got=seed, allowed="a MIDI file, a Score, or None")
        return self._draw(beginnings, request)

    def fill(
        self,
        midi: str | Path | Score,
        /,
        *,
        from_s: float | None = None,
        to_s: float | None = None,
        from_bar: int | None = None,
        to_bar: int | None = None,
        variations: int = Fill.variations,
        random_seed: int = Fill.random_seed,
        temperature: float = Sampling.temperature,
        top_k: int | None = None,
        top_p: float | str | None = AUTO,
        min_p: float | None = None,
        guard: bool = Sampling.guard,
        rules: Rules | None = None,
        control: Control | None = None,
        part: str | None = None,
        drums: bool = Fill.drums,
        window: int | None = None,
        rows_at_once: int = Fill.rows_at_once,
        humanize: bool = Request.humanize,
    ) -> list[Music]:
        """Replaces a region of a MIDI file or a score, `from_s` to `to_s` or `from_bar` to `to_bar`, by new music.

        Units:
            `from_s` and `to_s` in seconds, `from_bar` and `to_bar` in bars: the first is 1, the last is included.

        Raises:
            UserError: as the command does, in one line.
            KeyboardInterrupt: on Ctrl-C.
        """
        request = Fill(
            Sampling(temperature, top_k, top_p, min_p, guard),
            rules=rules or Rules(),
            control=(control or Control()).read(),
            random_seed=random_seed,
            variations=variations,
            rows_at_once=rows_at_once,
            humanize=humanize,
            window=window,
            drums=drums,
            only=part,
            from_s=from_s,
            to_s=to_s,
            from_bar=from_bar,
            to_bar=to_bar,
        )
        request.check_region()
        if isinstance(self.tokenizer, ScoreTokenizer):
            return [*self._draw_scores("infill", midi, request)]
        check_fills("this model", self.tokenizer)
        if isinstance(midi, Score):
            seed = Seed(midi, Meter(midi.quarter_s))
            return self._fill(gap_in_piece(seed, "the score", self.tokenizer, request), request)
        return self._fill(read_around([seed_path(str(midi))], self.tokenizer, request), request)

    def fill_between(
        self,
        a: str | Path,
        b: str | Path,
        /,
        *,
        seconds: float | None = None,
        bars: float | None = None,
        variations: int = Fill.variations,
        random_seed: int = Fill.random_seed,
        temperature: float = Sampling.temperature,
        top_k: int | None = None,
        top_p: float | str | None = AUTO,
        min_p: float | None = None,
        guard: bool = Sampling.guard,
        rules: Rules | None = None,
        control: Control | None = None,
        drums: bool = Fill.drums,
        window: int | None = None,
        rows_at_once: int = Fill.rows_at_once,
    ) -> list[Music]:
        """Joins two MIDI files, `a` and `b`, by `seconds` or `bars` of new music; none means 20 seconds.

        Raises:
            UserError: as the command does, in one line.
            KeyboardInterrupt: on Ctrl-C.
        """
        for midi in (a, b):
            if not isinstance(midi, str | Path):
                raise ConfigError("between", got=type(midi).__name__, allowed="two MIDI files; write a score to one")
        request = Fill(
            Sampling(temperature, top_k, top_p, min_p, guard),
            Length(seconds, bars),
            rules=rules or Rules(),
            control=(control or Control()).read(),
            random_seed=random_seed,
            variations=variations,
            rows_at_once=rows_at_once,
            window=window,
            drums=drums,
        )
        if isinstance(self.tokenizer, ScoreTokenizer):
            check_files(between=f"{a},{b}")
        check_fills("this model", self.tokenizer)
        return self._fill(read_around([seed_path(str(midi)) for midi in (a, b)], self.tokenizer, request), request)

    def _fill(self, gap: Beginning, request: Fill) -> list[Music]:
        return self._draw([gap], as_continue(gap, request, self.player, self.header))

    def _draw(self, beginnings: list[Beginning], request: Continue) -> list[Music]:
        own = self.header.sampling if self.header is not None else {}
        results = continue_all(beginnings, self.player, self.tokenizer, request, own=own)
        if is_interrupted(results, request.variations):
            raise KeyboardInterrupt
        return [music for each in results for music in each]

    def _draw_scores(self, field: str, score: object, request: Request) -> list[ScoreMusic]:
        """The scores of a file, or of every one in a folder or pattern."""
        if not isinstance(score, str | Path):
            kind = None if score is None else type(score).__name__
            raise ConfigError(field, got=kind, why="a score model needs bars and parts", allowed="a score's file")
        assert isinstance(self.tokenizer, ScoreTokenizer)
        tasks = [task_of(file, self.tokenizer, request) for file in find_seeds(str(score))]
        own = self.header.sampling if self.header is not None else {}
        return [music for each in draw_tasks(tasks, self.player, self.tokenizer, own) for music in each]

    def accompany_score(
        self,
        score: str | Path,
        /,
        *,
        variations: int = Accompany.variations,
        random_seed: int = Accompany.random_seed,
        temperature: float = Sampling.temperature,
        top_k: int | None = None,
        top_p: float | str | None = AUTO,
        min_p: float | None = None,
        rules: Rules | None = None,
        control: Control | None = None,
        rows_at_once: int = Accompany.rows_at_once,
        humanize: bool = Request.humanize,
    ) -> list[ScoreMusic]:
        """Writes the hands that a score lacks, with a model of scores.

        Raises:
            UserError: as the command does, in one line.
        """
        if not isinstance(self.tokenizer, ScoreTokenizer):
            raise BundleError("this model has no parts of a score", "call accompany")
        request = Accompany(
            Sampling(temperature, top_k, top_p, min_p, guard=False),
            rules=rules or Accompany().rules,
            control=(control or Control()).read(),
            random_seed=random_seed,
            variations=variations,
            rows_at_once=rows_at_once,
            humanize=humanize,
        )
        return self._draw_scores("score", score, request)

    def accompany(
        self,
        melody: str | Path | Score,
        /,
        *,
        voices: str = Accompany.voices,
        rewrite: str | None = None,
        from_bar: int | None = None,
        to_bar: int | None = None,
        transpose: int = Accompany.transpose,
        variations: int = Accompany.variations,
        random_seed: int = Accompany.random_seed,
        temperature: float = Sampling.temperature,
        top_k: int | None = None,
        top_p: float | str | None = AUTO,
        min_p: float | None = None,
        seed_guidance: float | str | None = AUTO,
        rules: Rules | None = None,
        control: Control | None = None,
        rows_at_once: int = Accompany.rows_at_once,
    ) -> list[Accompanied]:
        """Writes the other voices around a melody.

        `melody` is a MIDI file, or a score in four beats a bar. Where several notes sound, the highest is the melody's.

        Units:
            `transpose` in semitones.

        Raises:
            UserError: as the command does, in one line.
        """
        request = Accompany(
            Sampling(temperature, top_k, top_p, min_p, guard=False, seed_guidance=seed_guidance),
            rules=rules or Accompany().rules,
            control=(control or Control()).read(),
            random_seed=random_seed,
            variations=variations,
            rows_at_once=rows_at_once,
            voices=voices,
            rewrite=rewrite,
            from_bar=from_bar,
            to_bar=to_bar,
            transpose=transpose,
        )
        if isinstance(self.tokenizer, ScoreTokenizer):
            raise BundleError("this model writes parts of a score", "call accompany_score")
        request = check_request(request, self.tokenizer, self.header, "this model", self.model)
        if isinstance(melody, Score):
            if request.rewrite or len(request.voices) > 1:
                name, value = ("rewrite", request.rewrite) if request.rewrite else ("voices", request.voices)
                why, hint = "a Score does not say which voice sings", "give a MIDI file"
                raise ConfigError(name, got=value, why=why, hint=hint)
            tune = take_melody(melody, "the melody", request, self.tokenizer, Meter(melody.quarter_s))
        elif isinstance(melody, str | Path):
            tune = read_melody(seed_path(str(melody)), request, self.tokenizer)
        else:
            raise ConfigError("melody", got=melody, allowed="a MIDI file or a Score")
        return accompany_melody(tune, self._source_player, self.tokenizer, request)
