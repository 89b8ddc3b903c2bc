"""How statements define, rename and drop tables and other objects, and which of these are for the follower."""
