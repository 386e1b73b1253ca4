import signal
from itertools import pairwise
from unittest.mock import Mock

import pytest
import torch
from conftest import signalled
from runs import RECALL, config_of, curve, fit, val_nll

from musictx.config.app import settings
from musictx.config.train import LoggerConfig, TrainConfig
from musictx.errors import ConfigError
from musictx.model.bundle import load_bundle
from musictx.model.header import read_header
from musictx.model.keyboard import Keys
from musictx.objectives import Example
from musictx.tokenizers import build_tokenizer
from musictx.training import trainer
from musictx.training.metrics import read_metrics
from musictx.training.module import LanguageModelTraining
from musictx.training.optimizer import warmup_cosine, warmup_hold
from musictx.training.progress import Throughput
from musictx.training.start import keys_of
from musictx.training.trainer import build_loggers, check_logger, wandb_mode


def test_warmup_rises_to_one_and_the_cosine_falls_to_a_tenth():
    factors = [warmup_cosine(step, 4, 104) for step in range(104)]
    assert factors[:4] == [0.25, 0.5, 0.75, 1.0]
    assert factors[4] == pytest.approx(1.0)
    assert [warmup_cosine(step, 2, 2) for step in range(3)] == [0.5, 1.0, 1.0]  # all of it is warm-up
    assert factors[54] == pytest.approx(0.55)
    assert factors[-1] == pytest.approx(0.1, abs=1e-3)
    assert all(a >= b for a, b in pairwise(factors[4:]))


def test_the_rate_is_held_and_falls_straight_to_zero():
    factors = [warmup_hold(step, 4, 20, 0.5) for step in range(21)]
    assert factors[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert factors[10:13] == pytest.approx([1.0, 0.9, 0.8])
    assert factors[19:] == pytest.approx([0.1, 0.0])
    assert [warmup_hold(step, 2, 5, 0.0) for step in range(5)] == [0.5, 1.0, 1.0, 1.0, 1.0]
    assert [warmup_hold(step, 0, 4, 1.0) for step in range(4)] == [1.0, 0.75, 0.5, 0.25]


@pytest.mark.parametrize(
    ("settings", "rates"),
    [((), [0.25, 0.5, 0.5, 0.25]), (("trainer.decay_share=0",), [0.25, 0.5, 0.5, 0.5])],
)
def test_a_run_has_the_schedule_that_was_asked_for(world, tmp_path, settings, rates):
    asked = ("trainer.schedule=hold", "trainer.lr=0.5", "trainer.warmup_steps=2", "trainer.log_every=1", *settings)
    fit(config_of(world, tmp_path / "run", *asked))
    rows = read_metrics(tmp_path / "run" / "metrics.csv")
    logged = [float(row[name]) for row in rows for name in row if name.endswith("/pg1") and row[name]]
    assert logged == rates


@pytest.mark.parametrize(("keep", "chosen"), [("best", min), ("last", lambda nll: nll[-1])])
def test_the_best_model_is_kept_or_the_last_one_though_it_is_worse(world, tmp_path, keep, chosen):
    config = config_of(world, tmp_path / "run", "trainer.lr=1", "trainer.warmup_steps=400", f"trainer.keep={keep}")
    kept = read_header(fit(config)).val_nll
    nll = [float(row["val/nll"]) for row in read_metrics(tmp_path / "run" / "metrics.csv") if row.get("val/nll")]
    assert len(nll) == 2
    assert nll[-1] > min(nll) + 0.01
    assert kept == pytest.approx(chosen(nll), abs=1e-6)


def test_wandb_mode_is_config_then_environment_then_online(monkeypatch):
    for there, given, mode in (("", None, "online"), ("offline", None, "offline"), ("offline", "disabled", "disabled")):
        monkeypatch.setenv("WANDB_MODE", there)
        assert wandb_mode(LoggerConfig("wandb", mode=given)) == mode
    monkeypatch.setenv("WANDB_MODE", "dryrun")
    with pytest.raises(ConfigError, match="^mode=dryrun: "):
        wandb_mode(LoggerConfig("wandb"))


def test_a_wandb_that_does_not_answer_is_said_with_what_to_do(monkeypatch, tmp_path):
    import wandb  # half a second, where it is asked for alone

    def silent(*_, **__):
        raise wandb.errors.CommError("timed out\n  after 90 s.")

    monkeypatch.setenv("WANDB_MODE", "online")
    text = "^logger=wandb: timed .* 90 s: .*mode=offline"
    monkeypatch.setattr(wandb, "login", silent)
    with pytest.raises(ConfigError, match=text):
        check_logger(LoggerConfig("wandb"))
    monkeypatch.setattr(wandb, "init", silent)
    with pytest.raises(ConfigError, match=text):
        build_loggers(TrainConfig(name="run", logger=LoggerConfig("wandb")), tmp_path, "id")


def test_tensorboard_gets_the_numbers_of_metrics_csv(world, tmp_path):
    pytest.importorskip("tensorboard", reason="needs the extra: pip install 'musictx[tensorboard]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    fit(config_of(world, tmp_path / "run", "logger=tensorboard", "trainer.log_every=1"))
    events = EventAccumulator(str(tmp_path / "run/tensorboard"))
    events.Reload()
    for key in ("train/loss", "val/nll"):
        rows = {int(r["step"]): float(r[key]) for r in read_metrics(tmp_path / "run/metrics.csv") if key in r}
        shown = {event.step: event.value for event in events.Scalars(key)}
        assert len(rows) >= 2
        assert shown == pytest.approx(rows)


def test_tensorboard_shows_each_step_of_a_resumed_run_once(tmp_path):
    pytest.importorskip("tensorboard", reason="needs the extra: pip install 'musictx[tensorboard]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    config = TrainConfig(name="run", logger=LoggerConfig("tensorboard"))
    for from_step, until in ((0, 10), (5, 12)):
        _, logger = build_loggers(config, tmp_path, "id", from_step)
        for step in range(from_step, until):
            logger.log_metrics({"loss": step + until / 100}, step)
        logger.finalize("success")
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    shown = [(event.step, event.value) for event in events.Scalars("loss")]
    assert [step for step, _ in shown] == [*range(12)]
    assert shown[5][1] == pytest.approx(5.12)


def test_a_logger_that_is_not_installed_is_said(monkeypatch):
    monkeypatch.setattr(trainer, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="^logger=tensorboard: it is not installed.*pip install"):
        check_logger(LoggerConfig("tensorboard"))


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("random_seed=-1", "random_seed=-1: give 0 to 4294967295"),
        ("trainer.accelerator=tpu", "^accelerator=tpu: "),
        ("trainer.precision=16-mixed", "^precision=16-mixed: .*accelerator=cuda: .*bf16-mixed"),
        ("trainer.decay_share=0.3", "^decay_share=0.3: .* give schedule=hold"),
        ("trainer.lr=nan", "^lr=nan: "),
        ("trainer.max_steps=-2", "^max_steps=-2: .* 1 .* -1"),
        ("trainer.batch_size=0", "^batch_size=0: give 1 or more"),
        ("data.windows_per_epoch=3", "^windows_per_epoch=3: "),
        ("data.stretch=[1.0,3.0]", r"stretch=\[1.0,3.0\]: "),
        ("model.n_heads=3", "^d_model=16: .*n_heads=3"),
        ("logger.name=paper", "^name=paper: "),
    ],
)
def test_impossible_settings_are_refused_before_the_run_folder_is_made(world, tmp_path, setting, text):
    with pytest.raises(ConfigError, match=f"^{text}") as caught:
        fit(config_of(world, tmp_path / "run", *setting.split()))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


LEARNING = ["trainer.max_steps=40", "trainer.lr=3e-2", "trainer.warmup_steps=3", "trainer.validate_every=null"]
LEARNED = 5.2  # nats: a model that has learned nothing has 5.96, the logarithm of its ids


@pytest.mark.parametrize("precision", ["bf16-mixed", "bf16-true"])
def test_the_precisions_of_a_cpu_learn(world, tmp_path, precision):
    words = [*LEARNING, "trainer.max_epochs=99", f"trainer.precision={precision}"]
    bundle = fit(config_of(world, tmp_path / "run", *words))
    model = load_bundle(bundle).model
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert val_nll(bundle) < LEARNED


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        ([], 20 * 5),  # 5 steps an epoch
        (["trainer=gpu"], 100 * 5),
        (["trainer.max_steps=3000"], 3000),
        (["trainer.max_epochs=30"], 30 * 5),
        (["trainer.max_epochs=2", "trainer.max_steps=3000"], 2 * 5),
        (["experiment=jsb"], 3000),
    ],
)
def test_a_limit_that_a_person_names_decides_how_long_to_train(words, steps):
    config = settings("train", "data.path=store", "trainer.accumulate=2", *words)
    assert config.trainer.total_steps(batches_per_epoch=9) == steps


def test_of_two_limits_a_line_says_which_one_ends_the_training(world, tmp_path, capsys):
    words = ["data.windows_per_epoch=8", "trainer.validate_every=null"]  # 2 steps an epoch
    fit(config_of(world, tmp_path / "run", *words, "trainer.max_steps=5", "trainer.max_epochs=2"))
    assert "of two limits, trainer.max_epochs=2 ends the training, after 4 steps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "validated_after"),
    [
        ("trainer.max_steps=4 trainer.validate_every=100", [4]),
        ("trainer.max_steps=5 trainer.validate_every=2", [2, 4, 5]),
        ("trainer.max_steps=3 trainer.accumulate=3 trainer.validate_every=5", [5, 7]),  # the 4th batch ends an epoch
        ("trainer.max_steps=-1 trainer.max_epochs=2 trainer.validate_every=3", [3, 6, 8]),
        ("trainer.max_steps=6 trainer.max_epochs=9", [4, 6]),
        ("trainer.max_steps=22 trainer.validate_every=99 data.windows_per_epoch=4", [22]),  # more than 20 epochs
    ],
)
def test_the_end_of_training_is_always_validated(world, tmp_path, monkeypatch, settings, validated_after):
    seen = []
    original = LanguageModelTraining.on_validation_epoch_end

    def note(self):
        seen.append(self.trainer.fit_loop.total_batch_idx + 1)
        original(self)

    monkeypatch.setattr(LanguageModelTraining, "on_validation_epoch_end", note)
    every = [] if "validate_every" in settings else ["trainer.validate_every=null"]
    bundle = fit(config_of(world, tmp_path / "run", "data.windows_per_epoch=16", *settings.split(), *every))
    assert seen == validated_after
    assert val_nll(bundle) == pytest.approx(min(curve(tmp_path / "run", "val/nll")))


def test_ctrl_c_keeps_the_best_model_so_far(world, tmp_path):
    with signalled(3, signal.SIGINT):
        bundle = fit(config_of(world, tmp_path / "run"))
    assert val_nll(bundle) == pytest.approx(min(curve(tmp_path / "run", "val/nll")))


def test_throughput_is_of_the_last_batches_of_all_processes_without_validation(monkeypatch):
    clock = iter([0.0, 2.0, 3.0, 100.0, 103.0])
    monkeypatch.setattr("musictx.training.progress.BATCHES", 2)
    monkeypatch.setattr("musictx.training.progress.perf_counter", lambda: next(clock))
    module = Mock(spec=["log"])
    batch = Example([torch.zeros(3, 10)], torch.zeros(3, 10))
    callback, trainer = Throughput(), Mock(spec=["world_size"], world_size=3)
    callback.on_train_start(trainer, module)
    for _ in range(2):
        callback.on_train_batch_end(trainer, module, None, batch, 0)
    callback.on_validation_end(trainer, module)
    callback.on_train_batch_end(trainer, module, None, batch, 0)
    logged = [call.args for call in module.log.call_args_list]
    assert logged == [("train/tokens_per_s", rate) for rate in (45.0, 60.0, 45.0)]


@pytest.mark.parametrize("model", [["model=lstm"], ["model=lstm", *RECALL], ["model=lstm_residual"]])
def test_a_recurrent_model_is_trained_with_a_carried_state(world, tmp_path, monkeypatch, model):
    seen = []
    original = LanguageModelTraining.carry

    def note(self, inputs, fresh):
        seen.append(None if self.state is None else self.state.length)
        return original(self, inputs, fresh)

    monkeypatch.setattr(LanguageModelTraining, "carry", note)
    sizes = [*model, "model.d_model=16", "model.n_layers=1"]
    bundle = fit(config_of(world, tmp_path / "run", *LEARNING, "trainer.max_epochs=99", model=sizes))
    assert seen[:4] == [None, 32, 64, 96]
    assert load_bundle(bundle).header.model["kind"] == "recurrent"
    assert val_nll(bundle) < LEARNED


def test_a_keyboard_is_gained_and_its_tables_stay_as_they_are(world, tmp_path):
    settings = [f"init_from={world.bundle}", "model.keyboard=head", "trainer.ema_decay=0.5"]
    model = load_bundle(fit(config_of(world, tmp_path / "run", *settings))).model
    keys = keys_of(build_tokenizer("performance"))
    assert all(torch.equal(getattr(model.keyboard, name), getattr(keys, name)) for name in Keys._fields)
    assert model.keyboard is not None and model.keyboard.steer is not None  # noqa: PT018
    assert model.keyboard.steer.weight.abs().max() > 0


def test_a_run_that_gains_nothing_ends_with_its_best(world, tmp_path):
    still = ["trainer.lr=1e-12", "trainer.warmup_steps=0", "trainer.max_steps=40", "trainer.log_every=1"]
    bundle = fit(config_of(world, tmp_path / "run", *still, "trainer.patience=2"))
    assert bundle.exists()
    assert len(curve(bundle.parent)) < 20


def test_averaged_weights_are_validated_and_kept(world, tmp_path):
    averaged = fit(config_of(world, tmp_path / "averaged", "trainer.ema_decay=0.9"))
    a, b = (load_bundle(bundle).model.embed.weight for bundle in (world.bundle, averaged))
    assert (a - b).abs().max() > 0
