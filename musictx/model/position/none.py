"""`none`: a layer sees its past as a set. What order there is, layers above one another find out."""

from musictx.model.position.form import Form


class NoPosition(Form):
    """Plain causal attention."""

    movable = True  # a key has no place
