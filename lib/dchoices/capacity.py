"""How much a call or a study may ask for. No numpy here: the workflow reads its plan without it."""

from __future__ import annotations

MAX_EVENTS = 10**14  # two weeks of one core; counts of events stay far below 2**63
CALL = 1000  # events that cost as much time as what happens between two of them from Python, a sample say
LAST_SWITCH = 1e-14  # 1-λ of the last step of the bound that is told from its neighbours
