"""A sample plug-in of irc; pyproject.toml says which module adds what.  Nothing is imported before irc asks for it."""
