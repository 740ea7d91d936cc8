"""What breaks things: processes by role, a database server and a broker of its own, and links that can be cut."""
