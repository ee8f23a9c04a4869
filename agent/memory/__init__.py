"""Memory M = (W, E): what of an episode still goes into the prompt, and how.

Working memory W is the last steps, shown one by one; episodic memory E is what came before them, in
summaries of intentions and outcomes.
"""

from agent.memory.recall import Memory, OverBudget, Recalled, again
from agent.memory.summaries import ByChat, InWords, Summariser

__all__ = ["ByChat", "InWords", "Memory", "OverBudget", "Recalled", "Summariser", "again"]
