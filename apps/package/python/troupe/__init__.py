"""Troupe trains language models from feedback. The program is the command `troupe`; this module starts it too:
`python -m troupe`."""
from troupe_rl import __version__, refuse_clash

refuse_clash()
__all__ = ["__version__"]
