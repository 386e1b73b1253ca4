"""The kernels of relative attention in Triton; `fused` launches them.

One tile is N queries × N keys. Key blocks begin where query blocks begin (the first may begin LEAD rows before key 0).
So the tile b blocks before the diagonal has the distances b·N + m - n, with query m and key n. Where n <= m that is row
c = m - n of the b-th block of N rows of the table, elsewhere row c = N + m - n of the block before:

    relative[m, n] = C[m, (m - n) mod N],   C[m, c] = q_m · e_{b·N + c} if c <= m else q_m · e_{(b-1)·N + c}.

C takes one product Q·Eᵀ of N × N a tile: its other half is the product of the tile before. The gather permutes each row
and is its own inverse, so it takes gradients of logits back to distances. Those of the b-th block of rows come half
from tile b, half from tile b + 1: again one N × N matrix and one product. From tile NEAR on every distance is M - 1 or
more, and the relative logit is one number a query, "far".

TQ and TK count queries and keys; block i of queries is at block i + AHEAD of keys. B·H·T·D may pass 2³¹.
"""

import triton
import triton.language as tl

# mypy: ignore-errors
# (the arguments of a kernel are typed by Triton's compiler, at launch)


INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)
LN2 = tl.constexpr(0.6931471805599453)
SIZES = ["H", "TQ", "TK", "M", "LEAD", "AHEAD", "NEAR", "B", "SPLITS"]  # a new length needs no new kernel


@triton.jit
def _dot(a, b):
    if INTERPRETED and a.dtype == tl.bfloat16:  # there a bfloat16 is its bits, which tl.dot would multiply
        a, b = a.to(tl.float32), b.to(tl.float32)  # exact: as on a GPU, the products are sums in float32
    return tl.dot(a, b, input_precision="ieee")  # float32 stays float32, not tf32


# tl.sum and tl.max are themselves jitted when Triton is imported, which torch may do before TRITON_INTERPRET is set.
# tl.reduce is the builtin under them and works either way
@triton.jit
def _sum(x):
    return tl.reduce(x, 1, tl.standard._sum_combine)


@triton.jit
def _max(x):
    return tl.reduce(x, 1, tl.standard._elementwise_max)


@triton.jit
def _at(rows, stride, D: tl.constexpr):
    return rows.to(tl.int64)[:, None] * stride + tl.arange(0, D)[None, :]  # (N, D)


@triton.jit
def _load(x, start, stride, size, N: tl.constexpr, D: tl.constexpr):
    """Rows start … start + N - 1 of a matrix of `size` rows, zeros for missing rows."""
    rows = start + tl.arange(0, N)
    return tl.load(x + _at(rows, stride, D), mask=((rows >= 0) & (rows < size))[:, None], other=0.0)  # (N, D)


@triton.jit
def _load_numbers(x, start, size, N: tl.constexpr):
    rows = start + tl.arange(0, N)
    return tl.load(x + rows, mask=rows < size, other=0.0)  # (N,)


@triton.jit
def _store(x, values, start, stride, size, N: tl.constexpr, D: tl.constexpr):
    rows = start + tl.arange(0, N)
    tl.store(x + _at(rows, stride, D), values.to(x.dtype.element_ty), mask=((rows >= 0) & (rows < size))[:, None])


@triton.jit
def _load_table(e, b, M, N: tl.constexpr, D: tl.constexpr):
    """Block b of the table: distances from M - 1 on share the last row; a block before the first is never used."""
    rows = tl.minimum(tl.maximum(b * N + tl.arange(0, N), 0), M - 1)
    return tl.load(e + _at(rows, D, D))  # (N, D)


@triton.jit
def _load_last(e, M, D: tl.constexpr):
    return tl.load(e + (M - 1) * D + tl.arange(0, D)).to(tl.float32)  # (D,)


@triton.jit
def _turn(x, N: tl.constexpr, AXIS: tl.constexpr):
    """Distances to keys and back: y[m, k] = x[m, (m - k) mod N]; with AXIS 0 the same of transposed matrices."""
    along, across = tl.arange(0, N)[None, :], tl.arange(0, N)[:, None]
    index = (across - along) if AXIS == 1 else (along - across)
    return tl.gather(x, index & (N - 1), AXIS)  # & is mod: N is a power of two


@triton.jit
def _head(head, H, size, D: tl.constexpr):
    """The offset of head `head` of B·H in a tensor stored as (B, T, H, D), whose rows are H·D apart."""
    return (head // H).to(tl.int64) * size * H * D + (head % H) * D


@triton.jit
def _probabilities(logits, lse, keys, queries):
    """Softmax from the saved log₂ of its denominator; logits in units of log₂."""
    return tl.exp2(tl.where(keys <= queries, logits - lse, float("-inf")))


@triton.jit
def _positions(start, TK, N: tl.constexpr):
    """Positions of N keys; those before the first go into the future, which the causal mask hides."""
    keys = start + tl.arange(0, N)
    return tl.where(keys < 0, TK, keys)


@triton.jit
def _absorb(acc, total, peak, logits, v):
    """Adds a tile to the online softmax: acc / total is the output, peak the greatest logit so far."""
    new = tl.maximum(peak, _max(logits))
    p, shrink = tl.exp2(logits - new[:, None]), tl.exp2(peak - new)
    acc = acc * shrink[:, None] + _dot(p.to(v.dtype), v)
    return acc, total * shrink + _sum(p), new


@triton.jit(do_not_specialize=SIZES)
def forward(
    Q, K, V, E, OUT, LSE, scale, H, TQ, TK, M, LEAD, AHEAD, NEAR,
    qb, qh, qt, kb, kh, kt, vb, vh, vt, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """OUT (B, Tq, H, D) and LSE (B·H, Tq), one program a block of queries; `scale` is log₂(e) / sqrt(head size)."""
    blocks = (TQ + N - 1) // N
    i, head = blocks - 1 - tl.program_id(0) % blocks, tl.program_id(0) // blocks  # the longest first, a head together
    batch, h = (head // H).to(tl.int64), (head % H).to(tl.int64)
    k_base, v_base, e_base = K + batch * kb + h * kh, V + batch * vb + h * vh, E + h * M * D
    m, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    queries = ((i + AHEAD) * N - LEAD + tl.arange(0, N))[:, None]  # their positions
    top, near = i + AHEAD, tl.minimum(i + AHEAD + 1, NEAR)

    q = _load(Q + batch * qb + h * qh, i * N, qt, TQ, N, D)
    acc = tl.full([N, D], 0.0, tl.float32)
    total, peak = tl.full([N], 0.0, tl.float32), tl.full([N], float("-inf"), tl.float32)
    before = tl.full([N, N], 0.0, tl.float32)
    for IS_FAR in tl.static_range(2):  # two loops of one body: the near tiles, then the far ones
        if IS_FAR:
            far = _sum(q.to(tl.float32) * _load_last(e_base, M, D)[None, :])
        # the diagonal first: it has a key for every query, so that peak is finite from then on
        for b in range(near if IS_FAR else 0, top + 1 if IS_FAR else near):
            start = (top - b) * N - LEAD
            if IS_FAR:
                relative = far[:, None]
            else:
                r = _dot(q, tl.trans(_load_table(e_base, b, M, N, D)))  # (N queries, N distances)
                relative = _turn(tl.where(c <= m, r, before), N, 1)  # (N queries, N keys)
                before = r
            logits = (_dot(q, tl.trans(_load(k_base, start, kt, TK, N, D))) + relative) * scale
            logits = tl.where(_positions(start, TK, N)[None, :] <= queries, logits, float("-inf"))
            acc, total, peak = _absorb(acc, total, peak, logits, _load(v_base, start, vt, TK, N, D))
    _store(OUT + _head(head, H, TQ, D), acc / total[:, None], i * N, H * D, TQ, N, D)
    rows = i * N + tl.arange(0, N)
    tl.store(LSE + head.to(tl.int64) * TQ + rows, peak + tl.log2(total), mask=rows < TQ)


@triton.jit(do_not_specialize=SIZES)
def query_gradient(
    Q, K, V, E, OUT, GRAD, LSE, FAR, DELTA, DQ, DFAR, DE, scale, H, TQ, TK, M, LEAD, AHEAD, NEAR,
    qb, qh, qt, kb, kh, kt, vb, vh, vt, N: tl.constexpr, D: tl.constexpr, ADD_TABLE: tl.constexpr,
):  # fmt: skip
    """DQ (B, Tq, H, D) and DFAR (B·H, blocks of queries, D), the far tiles' share of the last row of the table.

    With ADD_TABLE, adds the near tiles' share to DE (H, NEAR·N, D), atomically; its rows past M - 1 belong to the last
    row too. DFAR and DE lack the factor 1 / sqrt(head size). It writes one number a query (B·H, Tq) for the next
    kernels: FAR = q · e_{M-1} and DELTA = output · its gradient.
    """
    blocks = (TQ + N - 1) // N
    i, head = blocks - 1 - tl.program_id(0) % blocks, tl.program_id(0) // blocks
    batch, h = (head // H).to(tl.int64), (head % H).to(tl.int64)
    k_base, v_base, e_base = K + batch * kb + h * kh, V + batch * vb + h * vh, E + h * M * D
    m, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    queries = ((i + AHEAD) * N - LEAD + tl.arange(0, N))[:, None]
    top, near = i + AHEAD, tl.minimum(i + AHEAD + 1, NEAR)

    q = _load(Q + batch * qb + h * qh, i * N, qt, TQ, N, D)
    grad = _load(GRAD + _head(head, H, TQ, D), i * N, H * D, TQ, N, D)
    rows, at = i * N + tl.arange(0, N), head.to(tl.int64) * TQ
    lse = _load_numbers(LSE + at, i * N, TQ, N)[:, None]
    delta = _sum(_load(OUT + _head(head, H, TQ, D), i * N, H * D, TQ, N, D).to(tl.float32) * grad.to(tl.float32))
    tl.store(DELTA + at + rows, delta, mask=rows < TQ)
    far = _sum(q.to(tl.float32) * _load_last(e_base, M, D)[None, :])
    tl.store(FAR + at + rows, far, mask=rows < TQ)
    dq, dfar = tl.full([N, D], 0.0, tl.float32), tl.full([N], 0.0, tl.float32)
    before, nothing = tl.full([N, N], 0.0, tl.float32), tl.full([N, N], 0.0, q.dtype)
    carried = nothing
    for IS_FAR in tl.static_range(2):
        for b in range(near if IS_FAR else 0, top + 1 if IS_FAR else near):
            start = (top - b) * N - LEAD
            k = _load(k_base, start, kt, TK, N, D)
            if IS_FAR:
                relative = far[:, None]
            else:
                r = _dot(q, tl.trans(_load_table(e_base, b, M, N, D)))
                relative = _turn(tl.where(c <= m, r, before), N, 1)
                before = r
            logits = (_dot(q, tl.trans(k)) + relative) * scale
            p = _probabilities(logits, lse, _positions(start, TK, N)[None, :], queries)
            ds = p * (_dot(grad, tl.trans(_load(v_base, start, vt, TK, N, D))) - delta[:, None])
            dq += _dot(ds.to(q.dtype), k)
            if IS_FAR:
                dfar += _sum(ds)
            else:  # now block b - 1 of the table is complete; there is none for b = 0
                by_distance = _turn(ds.to(q.dtype), N, 1)  # (N queries, N distances)
                complete = tl.where(c <= m, carried, by_distance)
                dq += _give(complete, q, e_base, DE, h * NEAR, b - 1, M, N, D, ADD_TABLE)
                carried = by_distance
    dq += _give(tl.where(c <= m, carried, nothing), q, e_base, DE, h * NEAR, near - 1, M, N, D, ADD_TABLE)
    dq += dfar[:, None] * _load_last(e_base, M, D)[None, :]
    _store(DQ + _head(head, H, TQ, D), dq * (scale * LN2), i * N, H * D, TQ, N, D)
    to_last = tl.reduce(dfar[:, None] * q.to(tl.float32), 0, tl.standard._sum_combine)  # (D,)
    tl.store(DFAR + (head.to(tl.int64) * blocks + i) * D + tl.arange(0, D), to_last)


@triton.jit
def _give(complete, q, e, de, first, b, M, N: tl.constexpr, D: tl.constexpr, ADD_TABLE: tl.constexpr):
    """The queries' share of the gradients by distance of block b of the table; adds the table's share to it."""
    if ADD_TABLE:
        rows = b * N + tl.arange(0, N)
        shares = _dot(tl.trans(complete), q)  # (N distances, D)
        tl.atomic_add(de + _at(first * N + rows, D, D), shares, mask=(rows >= 0)[:, None], sem="relaxed")
    return _dot(complete, _load_table(e, b, M, N, D))


@triton.jit(do_not_specialize=SIZES)
def key_gradient(
    Q, K, V, E, GRAD, LSE, FAR, DELTA, DK, DV, scale, H, TQ, TK, M, LEAD, AHEAD, NEAR,
    qb, qh, qt, kb, kh, kt, vb, vh, vt, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """DK and DV (B, Tk, H, D), one program a block of keys. Matrices are keys × queries, as both products need them."""
    blocks = (TQ + N - 1) // N
    j, head = tl.program_id(0) % (blocks + AHEAD), tl.program_id(0) // (blocks + AHEAD)
    batch, h = (head // H).to(tl.int64), (head % H).to(tl.int64)
    q_base, grad_base, e_base = Q + batch * qb + h * qh, GRAD + _head(head, H, TQ, D), E + h * M * D
    c, m = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    start, at = j * N - LEAD, head.to(tl.int64) * TQ
    keys = _positions(start, TK, N)[:, None]

    k = _load(K + batch * kb + h * kh, start, kt, TK, N, D)
    v = _load(V + batch * vb + h * vh, start, vt, TK, N, D)
    dk, dv = tl.full([N, D], 0.0, tl.float32), tl.full([N, D], 0.0, tl.float32)
    first = tl.maximum(j - AHEAD, 0)
    far_from = tl.maximum(first, tl.minimum(blocks, j - AHEAD + NEAR))
    for IS_FAR in tl.static_range(2):
        for i in range(far_from if IS_FAR else first, blocks if IS_FAR else far_from):
            q, grad = _load(q_base, i * N, qt, TQ, N, D), _load(grad_base, i * N, H * D, TQ, N, D)
            if IS_FAR:
                relative = _load_numbers(FAR + at, i * N, TQ, N)[None, :]
            else:
                r = _dot(_load_table(e_base, i + AHEAD - j, M, N, D), tl.trans(q))  # (N distances, N queries)
                before = _dot(_load_table(e_base, i + AHEAD - j - 1, M, N, D), tl.trans(q))
                relative = _turn(tl.where(c <= m, r, before), N, 0)  # (N keys, N queries)
            logits = (_dot(k, tl.trans(q)) + relative) * scale
            queries = (i + AHEAD) * N - LEAD + m
            p = _probabilities(logits, _load_numbers(LSE + at, i * N, TQ, N)[None, :], keys, queries)
            dv += _dot(p.to(grad.dtype), grad)
            ds = p * (_dot(v, tl.trans(grad)) - _load_numbers(DELTA + at, i * N, TQ, N)[None, :])
            dk += _dot(ds.to(q.dtype), q)
    _store(DK + _head(head, H, TK, D), dk * (scale * LN2), start, H * D, TK, N, D)
    _store(DV + _head(head, H, TK, D), dv, start, H * D, TK, N, D)


@triton.jit(do_not_specialize=SIZES)
def table_gradient(
    Q, K, V, E, GRAD, LSE, DELTA, DE, scale, B, H, TQ, TK, M, LEAD, AHEAD, NEAR, SPLITS,
    qb, qh, qt, kb, kh, kt, vb, vh, vt, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """The near tiles' share of the table, summed in a fixed order: DE (SPLITS, 2, H, NEAR·N, D).

    One program for a head, a distance b of tiles, and every SPLITS-th row of the batch. DE[:, 0] is the share of tiles
    b in block b of the table, DE[:, 1] their share in block b - 1.
    """
    b, split = tl.program_id(0) % NEAR, tl.program_id(0) // NEAR // H
    h = (tl.program_id(0) // NEAR % H).to(tl.int64)
    blocks = (TQ + N - 1) // N
    m, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    e_base = E + h * M * D
    e, e_before = _load_table(e_base, b, M, N, D), _load_table(e_base, b - 1, M, N, D)
    nothing = tl.full([N, N], 0.0, e.dtype)
    here, there = tl.full([N, D], 0.0, tl.float32), tl.full([N, D], 0.0, tl.float32)
    for batch in range(split, B, SPLITS):
        piece = tl.cast(batch, tl.int64)
        q_base, k_base, v_base = Q + piece * qb + h * qh, K + piece * kb + h * kh, V + piece * vb + h * vh
        at, grad_base = (piece * H + h) * TQ, GRAD + _head(piece * H + h, H, TQ, D)
        for i in range(tl.maximum(b - AHEAD, 0), blocks):
            start = (i + AHEAD - b) * N - LEAD
            q = _load(q_base, i * N, qt, TQ, N, D)
            queries = ((i + AHEAD) * N - LEAD + tl.arange(0, N))[:, None]
            relative = _turn(tl.where(c <= m, _dot(q, tl.trans(e)), _dot(q, tl.trans(e_before))), N, 1)
            logits = (_dot(q, tl.trans(_load(k_base, start, kt, TK, N, D))) + relative) * scale
            lse, delta = _load_numbers(LSE + at, i * N, TQ, N), _load_numbers(DELTA + at, i * N, TQ, N)
            p = _probabilities(logits, lse[:, None], _positions(start, TK, N)[None, :], queries)
            grad = _load(grad_base, i * N, H * D, TQ, N, D)
            ds = p * (_dot(grad, tl.trans(_load(v_base, start, vt, TK, N, D))) - delta[:, None])
            by_distance = _turn(ds.to(q.dtype), N, 1)
            here += _dot(tl.trans(tl.where(c <= m, by_distance, nothing)), q)
            there += _dot(tl.trans(tl.where(c <= m, nothing, by_distance)), q)
    _store(DE + (split * 2 * H + h) * NEAR * N * D, here, b * N, D, NEAR * N, N, D)
    _store(DE + (split * 2 * H + H + h) * NEAR * N * D, there, (b - 1) * N, D, NEAR * N, N, D)
