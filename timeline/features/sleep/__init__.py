"""Sleep in a handler: the task rests until a moment, and its handler goes on behind that."""
