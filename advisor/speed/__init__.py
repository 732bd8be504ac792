"""The time of a step, the twin of its memory."""

from advisor.speed.price import step_time, traffic
from advisor.speed.step_time import Conditions, StepTime, TimeTerm, Unpriced

__all__ = ["Conditions", "StepTime", "TimeTerm", "Unpriced", "step_time", "traffic"]
