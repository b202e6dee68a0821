"""One file per audit: from its result to the blocks of its section."""
