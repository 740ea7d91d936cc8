"""Other people's projects: what a host may be like, and that timelines behave there."""
