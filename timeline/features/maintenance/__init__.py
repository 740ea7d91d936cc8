"""What keeps a database small and its own: prune, erase, relabel, adopt, figures by the hour."""
