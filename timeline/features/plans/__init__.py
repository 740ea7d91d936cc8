"""How rows differ from what definitions say now, how they are made to follow, and what would be if."""
