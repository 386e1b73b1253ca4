"""Rows that share their prompts' keys and values answer as rows that have copies of them."""

import pytest
import torch
from proofs import tokens

from musictx.model.build import build_model, model_config
from musictx.model.cache import KVCache
from musictx.model.position import FORMS as FORMS_OF
from musictx.model.position.form import Form
from musictx.model.prompt_cache import PromptCache
from musictx.tokenizers import build_tokenizer
from musictx.training.start import keys_of

TOK = build_tokenizer("performance")
OF_ROW = [0, 1, 0, 1, 2, 0, 0]
FORMS = [
    *({"position": form} for form in ("rope", "sinusoidal")),
    {"position": "relative_fourier", "conv": 3, "keyboard": "head", "value_residual": True, "qk_norm": True},
]


def build(**settings):
    torch.manual_seed(0)
    sizes = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 32, "n_frequencies": 3, "dropout": 0.0}
    model = build_model(model_config("transformer", sizes | settings, vocab_size=TOK.vocab.size), keys=keys_of(TOK))
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return model.double().eval()


@torch.inference_mode()
def both(model, lengths, room, rolling, of_row=OF_ROW):
    """The state of rows after prompts of these lengths: shared, and with copies."""
    prompts = []
    for k, n in enumerate(lengths):
        prompts.append(model.init_state(1, room, rolling))
        for block in tokens(1, n, seed=k, below=300).split(8, 1):
            model.prefill(block, prompts[-1])
    assert model.shares_prompts
    own = room if rolling else room - max(lengths)
    return PromptCache(prompts, of_row, own), KVCache.join([prompts[i] for i in of_row])


@pytest.mark.parametrize(
    ("lengths", "room", "rolling"), [((9, 4, 1), 60, False), ((9, 9, 9), 8, True), ((30, 4, 1), 12, True)]
)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form.values())))
def test_a_shared_prompt_is_heard_as_a_copy_of_its_own(form, lengths, room, rolling):
    model = build(**form)
    shared, copies = both(model, lengths, room, rolling)
    steps = tokens(len(OF_ROW), 20, seed=9, below=300)
    with torch.inference_mode():
        for n in range(20):
            if n in (0, 11, 16):  # rows change places with others of their prompt
                moved = torch.tensor([2, 1, 5, 1, 4, 0, 0])
                shared.move(moved)
                copies.move(moved)
            torch.testing.assert_close(model.step(steps[:, n], shared), model.step(steps[:, n], copies))
    assert shared.length == copies.length


def test_what_a_row_finds_is_the_same_to_the_last_bit_whatever_the_number_of_others():
    """In float32, where another order of sums would be seen."""
    model, alone = build(position="relative_fourier").float(), None
    for of_row in ([1], [0, 1, 1], [1] * 9, [2, 1, 0] * 6):
        shared, _ = both(model, (300, 200, 1), 330, False, of_row)
        width = shared.k.shape[4]
        q, k, v = (
            tokens(1, 2 * n).float().view(1, 2, -1, w) / 9 for n, w in ((width, width), (5 * width, width), (40, 8))
        )
        rows = (x.repeat(len(of_row), 1, 1, 1) for x in (q, k, v))
        found = shared.attend(0, *rows, 0.3)[of_row.index(1)]
        alone = found if alone is None else alone
        assert torch.equal(found, alone)


def test_each_prompt_is_in_memory_once():
    model = build(position="relative_fourier")
    shared, _ = both(model, (40, 4, 1), 60, False)
    assert shared.k.shape[3] == 20  # room for new tokens alone
    assert len({prompt.k.data_ptr() for prompt, _ in shared.blocks}) == 3
    assert sorted(row for _, rows in shared.blocks for row in rows.tolist()) == list(range(len(OF_ROW)))
    with pytest.raises(TypeError, match="only move"):
        shared.take(torch.tensor([0]))


def test_other_forms_of_attention_share_nothing(monkeypatch):
    class Louder(Form):
        def forward(self, *given, **more):
            return 2 * super().forward(*given, **more)

    assert not build(position="relative").shares_prompts
    monkeypatch.setitem(FORMS_OF, "none", Louder)
    assert not build(position="none").shares_prompts
