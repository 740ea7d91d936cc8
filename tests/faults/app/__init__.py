"""A small site: its timelines write down, outside of any transaction, when their handlers are entered and left."""
