"""What a comparison can show: the smallest detectable difference, and the rows needed."""
