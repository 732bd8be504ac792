"""`Run` -> how it learns: the usual values of what decides that, and what an adapter asks of them."""

from advisor.learning.bands import Band, Training, band_of, method_of
from advisor.learning.rates import rate_caveat, rate_edits, rate_of, rate_shown

__all__ = ["Band", "Training", "band_of", "method_of", "rate_caveat", "rate_edits", "rate_of", "rate_shown"]
