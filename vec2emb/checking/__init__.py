"""Checks of a bundle: is it intact, does it match its source, can it be rebuilt, what does it contain."""
