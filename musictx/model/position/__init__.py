"""Forms of position: how attention knows where a token is. docs/extend/position.md adds another."""

from musictx.model.position.absolute import Learned, NoPosition, Sinusoidal
from musictx.model.position.form import Form
from musictx.model.position.fourier import Fourier
from musictx.model.position.rope import Rotary
from musictx.model.position.table import Table

FORMS: dict[str, type[Form]] = {
    "relative": Table,
    "relative_fourier": Fourier,
    "rope": Rotary,
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "none": NoPosition,
}


def timed_forms() -> list[str]:
    """The forms that can count musical time."""
    return [name for name, form in FORMS.items() if form.timed]


def describe(position: str, impl: str) -> str:
    """The attention of a model in words."""
    return f"attention: {position}" + f", impl={impl}" * issubclass(FORMS[position], Table)
