"""Drifts of the fluid models, filled into arrays the caller owns."""

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
def memory_drift(x, k, d, lam, negligible, out):
    """Fill `out` with dx/dt of SQ(d) with memory in the mode whose lowest observation is k (derived from the model).

    Service (i,j) -> (i-1,j) at rate 1; sampling (i,j) -> (i,i) at rate δ = λd; a server found with i < k jobs is
    raised to k at once, so the net effect is (i,j) -> (k,k); the remaining flow λR_k = λ(1 - S_k) is spread over the
    servers with observation k in proportion to x[i,k]/y_k. While y_k <= `negligible` that mass is new, all at (k,k).
    """
    levels = x.shape[0]
    out[:, :] = 0.0
    for j in range(k, levels):
        for i in range(j + 1):
            mass = x[i, j]
            if i >= 1:
                out[i, j] -= mass
                out[i - 1, j] += mass
            found = max(i, k)
            if i < j or i < k:
                out[i, j] -= lam * d * mass
                out[found, found] += lam * d * mass
    flow = lam * max(0.0, 1.0 - d * waiting_jobs(x, k))
    held = x[:, k].sum()
    for i in range(k + 1):
        share = x[i, k] / held if held > negligible else 1.0 * (i == k)
        out[i, k] -= flow * share
        out[i + 1, k + 1] += flow * share


@kernel
def memoryless_drift(s, d, lam, out):
    """Fill `out` with ds/dt of SQ(d), s[i] the fraction of servers with more than i jobs (i + 1 at least).

    ds_i/dt = λ(s_{i-1}^d - s_i^d) - (s_i - s_{i+1}) (Mitzenmacher; Vvedenskaya et al.).
    """
    above = 1.0
    for i in range(s.size):
        below = s[i + 1] if i + 1 < s.size else 0.0
        out[i] = lam * (above**d - s[i] ** d) - (s[i] - below)
        above = s[i]
