"""Whether a person's decision holds: digest, person, expiry, single use, precedence, quorum. Pure: reads nothing."""
