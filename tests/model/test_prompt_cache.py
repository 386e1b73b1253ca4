"""Rows that share their prompts' keys and values answer as rows that have copies of them."""

import pytest
import torch
from proofs import tokens

from musictx.model.build import build_model, model_config
from musictx.model.cache import KVCache
from musictx.model.prompt_cache import PromptCache
from musictx.tokenizers import build_tokenizer
from musictx.training.start import keys_of

TOK = build_tokenizer("performance")
OF_ROW = [0, 1, 0, 1, 2, 0, 0]
FORMS = [
    *({"position": form} for form in ("relative_fourier", "rope", "sinusoidal", "none")),
    {"position": "relative_fourier", "conv": 3, "keyboard": "both", "value_residual": True, "qk_norm": True},
]


def build(**settings):
    torch.manual_seed(0)
    sizes = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 32, "n_frequencies": 3, "dropout": 0.0}
    model = build_model(model_config("transformer", sizes | settings, vocab_size=TOK.vocab.size), keys=keys_of(TOK))
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return model.double().eval()


@torch.inference_mode()
def both(model, lengths, room, rolling):
    """The state of rows after prompts of these lengths: shared, and with copies."""
    prompts = []
    for k, n in enumerate(lengths):
        prompts.append(model.init_state(1, room, rolling))
        for block in tokens(1, n, seed=k, below=300).split(8, 1):
            model.prefill(block, prompts[-1])
    return model.after_prompts(prompts, OF_ROW, room), KVCache.join([prompts[i] for i in OF_ROW])


@pytest.mark.parametrize(
    ("lengths", "room", "rolling"), [((9, 4, 1), 60, False), ((9, 9, 9), 8, True), ((30, 4, 1), 12, True)]
)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form.values())))
def test_a_shared_prompt_is_heard_as_a_copy_of_its_own(form, lengths, room, rolling):
    model = build(**form)
    shared, copies = both(model, lengths, room, rolling)
    assert isinstance(shared, PromptCache)
    steps = tokens(len(OF_ROW), 30, seed=9, below=300)
    with torch.inference_mode():
        for n in range(30):
            if n == 11:  # rows change places with others of their prompt
                moved = torch.tensor([2, 1, 5, 1, 4, 0, 0])
                shared.move(moved)
                copies.move(moved)
            torch.testing.assert_close(model.step(steps[:, n], shared), model.step(steps[:, n], copies))
    assert shared.length == copies.length


def test_each_prompt_is_in_memory_once():
    model = build(position="relative_fourier")
    shared, _ = both(model, (40, 4, 1), 60, False)
    assert shared.k.shape[3] == 20  # room for new tokens alone
    assert len({prompt.k.data_ptr() for prompt, _ in shared.groups}) == 3
    assert sorted(row for _, rows in shared.groups for row in rows.tolist()) == list(range(len(OF_ROW)))
    with pytest.raises(TypeError, match="only move"):
        shared.take(torch.tensor([0]))


def test_a_table_has_copies():
    shared, _ = both(build(position="relative"), (5, 4, 1), 20, False)
    assert type(shared) is KVCache
