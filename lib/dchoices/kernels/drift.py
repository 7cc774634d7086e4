"""The drift of the fluid model with memory inside a mode (derived from the model)."""

from dchoices.kernels.jit import kernel


@kernel
def waiting_jobs(x, k):
    """Return Σ_{i<k} (k-i) p_i, the jobs that raise every queue below k to k; times d it is S_k of the model."""
    total = 0.0
    for i in range(min(k, x.shape[0])):
        for j in range(i, x.shape[1]):
            total += (k - i) * x[i, j]
    return total


@kernel
def held(x, k):
    """Return y_k, the servers with observation k."""
    total = 0.0
    for i in range(k + 1):
        total += x[i, k]
    return total


@kernel
def dispatch(x, k, d, lam, thin, share):
    """Return the flow λR_k = λ(1 - S_k) to observation k and its rate per server θ; fill the `share` of each queue.

    The flow is spread over the servers with observation k in proportion to x[i,k]/y_k, at rate θ = λR_k/y_k. In a
    `thin` class, which holds next to nothing, θ has no bound: what enters it, all at (k,k), leaves it at once. Class 0
    has no other servers than (0,0), so that its θ plays no part.
    """
    flow = lam * (1.0 - d * waiting_jobs(x, k))
    if thin or k == 0:
        share[:k], share[k] = 0.0, 1.0
        return flow, 0.0
    mass = held(x, k)
    for i in range(k + 1):
        share[i] = x[i, k] / mass
    return flow, flow / mass


@kernel
def memory_drift(x, k, d, lam, thin, share, out):
    """Fill `out` with dx/dt of SQ(d) with memory in the mode whose lowest observation is k.

    Service (i,j) -> (i-1,j) at rate 1; sampling (i,j) -> (i,i) at rate δ = λd; a server found with i < k jobs is
    raised to k at once, so the net effect is (i,j) -> (k,k); `dispatch` of the rest (i,k) -> (i+1,k+1).
    """
    delta = lam * d
    out[:, :] = 0.0
    for j in range(k, x.shape[0]):
        for i in range(j + 1):
            mass = x[i, j]
            if i >= 1:
                out[i, j] -= mass
                out[i - 1, j] += mass
            if i < j or i < k:
                found = max(i, k)
                out[i, j] -= delta * mass
                out[found, found] += delta * mass
    flow, _ = dispatch(x, k, d, lam, thin, share)
    for i in range(k + 1):
        out[i, k] -= flow * share[i]
        out[i + 1, k + 1] += flow * share[i]
