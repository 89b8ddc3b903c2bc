"""Has the rows that an audit found drifted told again by the leader's producer, so that the follower gets them."""
